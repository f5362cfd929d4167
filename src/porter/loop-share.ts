/**
 * How long one link may keep the event loop at a time. All sandboxes and the API share the loop, and a sandbox decides how many frames it
 * sends and how much work each of them makes.
 */

const shareMs = 2;
/** After a pause this long the loop had time for others in between. */
const gapMs = 1;

export class LoopShare {
  #fromMs = 0;
  #lastMs = 0;

  /** Before a stretch of work, which may follow directly on another. */
  begin(nowMs: number = performance.now()): void {
    if (nowMs - this.#lastMs > gapMs) this.#fromMs = nowMs;
    this.#lastMs = nowMs;
  }

  /** After each piece of work. True: let the others have their turn. */
  isUsedUp(nowMs: number = performance.now()): boolean {
    this.#lastMs = nowMs;
    return nowMs - this.#fromMs > shareMs;
  }

  /** The others had their turn. */
  renew(nowMs: number = performance.now()): void {
    this.#fromMs = nowMs;
    this.#lastMs = nowMs;
  }
}
