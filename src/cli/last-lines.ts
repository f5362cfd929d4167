/** The last lines of bytes that come in pieces, with no more kept than is needed for them. */

const newline = 0x0a;

export class LastLines {
  readonly #most: number;
  readonly #chunks: Buffer[] = [];
  #newlines = 0;
  #totalBytes = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /** Of everything that came. */
  get totalBytes(): number {
    return this.#totalBytes;
  }

  push(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#newlines += count(chunk);
    this.#totalBytes += chunk.length;
    for (let first = this.#chunks[0]; first !== undefined; first = this.#chunks[0]) {
      const inFirst = count(first);
      // One more than the lines wanted: the one before the first of them ends it.
      if (this.#newlines - inFirst <= this.#most) break;
      this.#chunks.shift();
      this.#newlines -= inFirst;
    }
  }

  async *chunks(): AsyncGenerator<Buffer> {
    const all = Buffer.concat(this.#chunks);
    // A newline at the very end ends the last line; it begins none.
    let at = all.at(-1) === newline ? all.length - 1 : all.length;
    for (let lines = 0; lines < this.#most && at >= 0; lines++) {
      at = at === 0 ? -1 : all.lastIndexOf(newline, at - 1);
    }
    yield all.subarray(at + 1);
  }
}

function count(chunk: Buffer): number {
  let found = 0;
  for (let at = chunk.indexOf(newline); at >= 0; at = chunk.indexOf(newline, at + 1)) found++;
  return found;
}
