/**
 * Bytes that wait for a reader. Small pieces are put together, so that what is held is about what was sent: a piece of one
 * byte would otherwise keep the whole chunk alive in which it came.
 */

const blockBytes = 16 * 1024;

export class ByteQueue {
  #blocks: Buffer[] = [];
  /** The last block, where it is one of ours with room left, and how much of it is used. */
  #open: Buffer | undefined;
  #used = 0;

  push(data: Buffer): void {
    if (data.length >= blockBytes && data.buffer.byteLength <= 4 * data.length) {
      this.#seal();
      this.#blocks.push(data);
      return;
    }
    for (let offset = 0; offset < data.length; ) {
      if (this.#open === undefined || this.#used === blockBytes) {
        this.#seal();
        this.#open = Buffer.allocUnsafeSlow(blockBytes);
      }
      const copied = data.copy(this.#open, this.#used, offset);
      this.#used += copied;
      offset += copied;
    }
  }

  shift(): Buffer | undefined {
    if (this.#blocks.length === 0) this.#seal();
    return this.#blocks.shift();
  }

  get isEmpty(): boolean {
    return this.#blocks.length === 0 && this.#open === undefined;
  }

  clear(): void {
    this.#blocks = [];
    this.#open = undefined;
    this.#used = 0;
  }

  #seal(): void {
    if (this.#open === undefined) return;
    // A little in a whole block would hold the block: copied to its own size.
    const part = this.#open.subarray(0, this.#used);
    this.#blocks.push(this.#used < blockBytes / 2 ? Buffer.from(part) : part);
    this.#open = undefined;
    this.#used = 0;
  }
}
