/** Output on its way to one reader. A chunk counts as taken when the reader asks for the next one. */

export class OutputQueue implements AsyncIterable<Buffer> {
  #chunks: Array<{ readonly data: Buffer; readonly taken: () => void }> = [];
  #ended = false;
  #failure: Error | undefined;
  #wake: (() => void) | undefined;
  #discarding = false;

  /** Resolves when the reader has taken it, or at once when nobody will. */
  push(data: Buffer): Promise<void> {
    if (this.#discarding) return Promise.resolve();
    return new Promise((taken) => {
      this.#chunks.push({ data, taken });
      this.#wake?.();
    });
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
    for (const { taken } of chunks) taken();
  }

  /** For one reader. A reader that stops early discards the rest. */
  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer> {
    try {
      for (;;) {
        const next = this.#chunks.shift();
        if (next !== undefined) {
          try {
            yield next.data;
          } finally {
            // Also when the reader stops here: what it got counts as taken, or the exec would never be over.
            next.taken();
          }
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
