/**
 * Tells a sender that has said its piece from one whose bytes are on their way. The end of a small chunk is the end of a
 * write: after it a short pause counts. Elsewhere a gap may be a network's, whose position a client can influence, so only
 * a long one counts.
 */

const shortPauseMs = 20;
const longPauseMs = 1000;
/** Servers that fill a buffer before they write have larger chunks, which end anywhere. */
const mostWrittenBytes = 4096;

export class Pauses {
  #onWritten: (() => void) | undefined;

  /** A whole chunk of so many bytes was read. */
  readonly chunkEnded = (bytes: number): void => {
    if (bytes < mostWrittenBytes) this.#onWritten?.();
  };

  /** True as soon as the sender pauses; false when `next` settles before. */
  async isLong(next: Promise<unknown>): Promise<boolean> {
    return await new Promise((resolve) => {
      let timer: NodeJS.Timeout;
      const settle = (isLong: boolean): void => {
        clearTimeout(timer);
        this.#onWritten = undefined;
        resolve(isLong);
      };
      const waitFor = (ms: number): void => {
        clearTimeout(timer);
        timer = setTimeout(() => settle(true), ms);
      };
      waitFor(longPauseMs);
      this.#onWritten = () => waitFor(shortPauseMs);
      const settled = (): void => settle(false);
      next.then(settled, settled);
    });
  }
}
