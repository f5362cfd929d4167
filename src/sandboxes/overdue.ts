/**
 * Notices a command that should have ended and did not. porter ends it inside, at its deadline or when it is told to; one that was
 * replaced need not. Only time counts in which the sandbox could have said so: while it is paused or not reached, deadlines wait.
 */

const lookEveryMs = 1000;

export interface OverdueHost {
  /** Whether the sandbox could say now that it ended. */
  readonly isActive: () => boolean;
  /** Beyond what was allowed: for a machine that is busy. */
  readonly patienceMs: number;
  readonly onOverdue: () => void;
}

export class Overdue {
  readonly #host: OverdueHost;
  #leftMs = Number.POSITIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;

  constructor(host: OverdueHost) {
    this.#host = host;
  }

  /** It has this long from now on. The soonest of several counts. */
  allow(ms: number): void {
    this.#leftMs = Math.min(this.#leftMs, ms + this.#host.patienceMs);
    this.#timer ??= setInterval(() => this.#look(), lookEveryMs).unref();
  }

  /** It ended. */
  end(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#leftMs = Number.POSITIVE_INFINITY;
  }

  /** Looks that come late, as after a sleep of the machine, count as one. */
  #look(): void {
    if (!this.#host.isActive()) return;
    this.#leftMs -= lookEveryMs;
    if (this.#leftMs > 0) return;
    this.end();
    this.#host.onOverdue();
  }
}
