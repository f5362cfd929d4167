/** Output of one exec on its way to a reader. What the reader takes is reported, and becomes credit for more. */

export class OutputQueue implements AsyncIterable<Buffer> {
  readonly #taken: (bytes: number) => void;
  #chunks: Buffer[] = [];
  #ended = false;
  #failure: Error | undefined;
  #wake: (() => void) | undefined;
  #discarding = false;

  constructor(taken: (bytes: number) => void) {
    this.#taken = taken;
  }

  push(chunk: Buffer): void {
    if (this.#discarding) {
      this.#taken(chunk.length);
      return;
    }
    this.#chunks.push(chunk);
    this.#wake?.();
  }

  end(failure?: Error): void {
    this.#ended = true;
    this.#failure = failure;
    this.#wake?.();
  }

  /** Nobody will read this: what is here and what still comes is thrown away, so that it holds nothing up. */
  discard(): void {
    this.#discarding = true;
    const chunks = this.#chunks;
    this.#chunks = [];
    for (const chunk of chunks) this.#taken(chunk.length);
  }

  /** For one reader. A reader that stops early discards the rest. */
  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer> {
    try {
      for (;;) {
        const chunk = this.#chunks.shift();
        if (chunk !== undefined) {
          yield chunk;
          this.#taken(chunk.length);
          continue;
        }
        if (this.#failure !== undefined) throw this.#failure;
        if (this.#ended) return;
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
        this.#wake = undefined;
      }
    } finally {
      this.discard();
    }
  }
}
