/**
 * Tells a sender that has said its piece from one whose bytes are on their way. The end of a small chunk is the end of a
 * write: after it a short pause counts, unless so much came without a pause that the network may have made this one. Elsewhere
 * a gap may be a network's, whose position a client can influence, so only a long one counts (docs/decisions/0027).
 */

const shortPauseMs = 20;
const longPauseMs = 1000;
/** Servers that fill a buffer before they write have larger chunks, which end anywhere. */
const mostWrittenBytes = 4096;
/** A TCP sender that begins, or rested, sends ten segments before it waits for the other side (RFC 6928). */
const mostBurstBytes = 8192;

export class Pauses {
  #waitFor: ((ms: number) => void) | undefined;
  /** In chunks since the last pause. */
  #burstBytes = 0;

  /** A whole chunk of so many bytes was read. */
  readonly chunkEnded = (bytes: number): void => {
    this.#burstBytes += bytes;
    const isWritten = bytes < mostWrittenBytes && this.#burstBytes <= mostBurstBytes;
    this.#waitFor?.(isWritten ? shortPauseMs : longPauseMs);
  };

  /** True as soon as the sender pauses; false when `next` settles before. To be called for every piece. */
  async isLong(next: Promise<unknown>): Promise<boolean> {
    const from = performance.now();
    const isLong = await new Promise<boolean>((resolve) => {
      let timer: NodeJS.Timeout;
      const settle = (isLong: boolean): void => {
        clearTimeout(timer);
        resolve(isLong);
      };
      const waitFor = (ms: number): void => {
        clearTimeout(timer);
        // Timers come before input: after a busy time bytes may be there that nobody has read.
        timer = setTimeout(() => setImmediate(settle, true), ms);
      };
      waitFor(longPauseMs);
      this.#waitFor = waitFor;
      const settled = (): void => settle(false);
      next.then(settled, settled);
    });
    this.#waitFor = undefined;
    if (performance.now() - from >= shortPauseMs) this.#burstBytes = 0;
    return isLong;
  }
}
