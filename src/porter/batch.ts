/**
 * Decides when to tell porter what was taken: at once for a large amount, after this turn of the event loop for one that a
 * stream with a small share may be waiting for, else after a moment. Never not at all: what is not given back counts against
 * the whole connection, and many small remainders would bring it to a halt.
 */

const stepBytes = 128 * 1024;
const promptBytes = 4 * 1024;
const momentMs = 5;

export class Batch {
  readonly #tell: () => void;
  #bytes = 0;
  #timer: NodeJS.Timeout | undefined;
  #turn: NodeJS.Immediate | undefined;

  constructor(tell: () => void) {
    this.#tell = tell;
  }

  add(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes >= stepBytes) this.flush();
    else if (this.#bytes >= promptBytes) this.#turn ??= setImmediate(() => this.#afterTurn(0));
    else this.#timer ??= setTimeout(() => this.flush(), momentMs);
  }

  /** While every turn brings more, a large amount will be reached soon; when one does not, somebody may be waiting. */
  #afterTurn(before: number): void {
    if (this.#bytes === before) this.flush();
    else {
      const seen = this.#bytes;
      this.#turn = setImmediate(() => this.#afterTurn(seen));
    }
  }

  flush(): void {
    if (this.#bytes === 0) return;
    this.forget();
    this.#tell();
  }

  /** It was told by somebody else. */
  forget(): void {
    clearTimeout(this.#timer);
    clearImmediate(this.#turn);
    this.#timer = undefined;
    this.#turn = undefined;
    this.#bytes = 0;
  }
}
