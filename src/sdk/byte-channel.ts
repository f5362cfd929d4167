/** Bytes on their way to one reader in this program, which may be slower than they come. */

import { deferred } from '../lib/deferred.ts';

export class ByteChannel implements AsyncIterable<Buffer> {
  readonly #changed: () => void;
  #chunks: Buffer[] = [];
  #bytes = 0;
  #over = false;
  #failure: Error | undefined;
  #discards = false;
  #isRead = false;
  #wake = deferred<void>();

  /** `changed` is called when bytes were taken. */
  constructor(changed: () => void) {
    this.#changed = changed;
  }

  /** Not yet read. */
  get bytes(): number {
    return this.#bytes;
  }

  push(chunk: Buffer): void {
    if (this.#discards || this.#over) return;
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    this.#ring();
  }

  end(failure?: Error): void {
    if (this.#over) return;
    this.#over = true;
    this.#failure = failure;
    this.#ring();
  }

  /** Nobody will read it: what is there and what comes is thrown away, unless somebody reads already. */
  discard(): void {
    if (this.#isRead) return;
    this.#drop();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer> {
    this.#isRead = true;
    try {
      for (;;) {
        const chunk = this.#chunks.shift();
        if (chunk !== undefined) {
          this.#bytes -= chunk.length;
          this.#changed();
          yield chunk;
        } else if (this.#over) {
          if (this.#failure !== undefined) throw this.#failure;
          return;
        } else {
          await this.#wake.promise;
        }
      }
    } finally {
      // A reader that leaves must not hold up the other channel.
      this.#drop();
    }
  }

  /** All of it as text. */
  async text(): Promise<string> {
    const chunks: Buffer[] = [];
    for await (const chunk of this) chunks.push(chunk);
    return Buffer.concat(chunks).toString('utf8');
  }

  #drop(): void {
    this.#discards = true;
    this.#chunks = [];
    this.#bytes = 0;
    this.#changed();
  }

  #ring(): void {
    this.#wake.resolve();
    this.#wake = deferred<void>();
  }
}
