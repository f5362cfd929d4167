/** A token bucket: so much at once, and then so much a second. */

export interface Rate {
  readonly burst: number;
  readonly perSecond: number;
}

/** Programs give up after some ten seconds without an answer. */
const longestMs = 5000;

export class Allowance {
  readonly #rate: Rate;
  #left: number;
  #countedMs: number;

  constructor(rate: Rate, nowMs: number = performance.now()) {
    this.#rate = rate;
    this.#left = rate.burst;
    this.#countedMs = nowMs;
  }

  /** False: there is too little left, and nothing was taken. */
  take(amount = 1, nowMs: number = performance.now()): boolean {
    this.#refill(nowMs);
    if (this.#left < amount) return false;
    this.#left -= amount;
    return true;
  }

  /**
   * Takes in any case, and returns how many milliseconds the caller has to wait before it uses what it took: callers that wait pass one
   * after the other at the rate. Nobody waits longer than `longestMs`, so a flood that is over is forgotten by then.
   */
  reserve(amount = 1, nowMs: number = performance.now()): number {
    this.#refill(nowMs);
    const { perSecond } = this.#rate;
    this.#left = Math.max(this.#left - amount, (-perSecond * longestMs) / 1000);
    return this.#left >= 0 ? 0 : (-this.#left / perSecond) * 1000;
  }

  #refill(nowMs: number): void {
    const { burst, perSecond } = this.#rate;
    this.#left = Math.min(burst, this.#left + ((nowMs - this.#countedMs) / 1000) * perSecond);
    this.#countedMs = nowMs;
  }
}
