/** Notices that the daemon is of no use to anybody: no request under way and no sandbox alive for a while. */

export interface IdleStopOptions {
  readonly idleMs: number;
  readonly isInUse: () => boolean;
  readonly stop: () => void;
}

/** A look at the state every so often catches what ends without a request: a sandbox that stops by itself. */
const mostLookMs = 30_000;

export class IdleStop {
  readonly #options: IdleStopOptions;
  readonly #timer: NodeJS.Timeout;
  #lastUse = performance.now();

  constructor(options: IdleStopOptions) {
    this.#options = options;
    this.#timer = setInterval(() => this.#look(), Math.min(mostLookMs, options.idleMs / 2));
    this.#timer.unref();
  }

  /** Something began or ended. */
  touch(): void {
    this.#lastUse = performance.now();
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    const { idleMs, isInUse, stop } = this.#options;
    if (isInUse()) {
      this.touch();
      return;
    }
    if (performance.now() - this.#lastUse < idleMs) return;
    this.close();
    stop();
  }
}
