/**
 * How much of the thread's time each sandbox takes, measured whatever it is spent on: handshakes, frames, decryption, unpacking, masking.
 * A sandbox that takes more than its share waits: what it sends stays where it is, and what comes for it is read later. Nothing fails.
 *
 * The time is that in which the loop was busy between two marks. A message of a sandbox begins its time; bytes that are handed to it end
 * it. So a little may be counted for a neighbour, which a share has room for.
 */

import { performance } from 'node:perf_hooks';
import { Allowance, type Rate } from '../../lib/allowance.ts';

/** In milliseconds of the thread, of one sandbox beside others. */
const contended: Rate = { burst: 250, perSecond: 400 };
/** A sandbox that is alone has almost all of it, and leaves the others a gap to begin in. */
const costAlone = 0.45;
/** Others have their turn after so long. */
const turnMs = 5;
/** A sandbox counts as there for so long. */
const activeMs = 1000;

export class ThreadTime {
  readonly #busyMs: () => number;
  #countedMs: number;
  #current: ThreadShare | undefined;
  #isEnding = false;
  /** When each was there last; only those of late. */
  readonly #active = new Map<ThreadShare, number>();

  constructor(busyMs: () => number = () => performance.eventLoopUtilization().active) {
    this.#busyMs = busyMs;
    this.#countedMs = busyMs();
  }

  share(): ThreadShare {
    return new ThreadShare(this);
  }

  /** What happens from here on is for this one, until the next mark or the end of the turn. */
  begin(share: ThreadShare): void {
    this.#count(this.#current);
    this.#current = share;
    this.#active.set(share, performance.now());
    if (this.#isEnding) return;
    this.#isEnding = true;
    setImmediate(() => {
      this.#isEnding = false;
      this.#count(this.#current);
      this.#current = undefined;
    });
  }

  /** What happened since the last mark was for this one. */
  done(share: ThreadShare): void {
    this.#count(share);
  }

  forget(share: ThreadShare): void {
    this.#active.delete(share);
    if (this.#current === share) this.#current = undefined;
  }

  #count(share: ThreadShare | undefined): void {
    const busyMs = this.#busyMs();
    const spentMs = busyMs - this.#countedMs;
    this.#countedMs = busyMs;
    if (share !== undefined && spentMs > 0) share.spend(this.#isAlone(share) ? spentMs * costAlone : spentMs);
  }

  #isAlone(share: ThreadShare): boolean {
    const now = performance.now();
    for (const [other, at] of this.#active) {
      if (now - at > activeMs) this.#active.delete(other);
      else if (other !== share) return false;
    }
    return true;
  }
}

export class ThreadShare {
  readonly #time: ThreadTime;
  readonly #allowance = new Allowance(contended);
  #freeAtMs = 0;
  /** What waits for its turn, in order. */
  #waiting: (() => void)[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(time: ThreadTime) {
    this.#time = time;
  }

  /** Of `ThreadTime` alone. */
  spend(ms: number): void {
    this.#freeAtMs = performance.now() + this.#allowance.reserve(ms);
  }

  /** Does the work as soon as it is this sandbox's turn, after all that was given before. */
  run(work: () => void): void {
    if (this.#waiting.length === 0 && this.#waitMs() <= 0) this.#do(work);
    else {
      this.#waiting.push(work);
      this.#wake();
    }
  }

  /** Bytes were handed to the sandbox; `next` asks for more of them. */
  handed(next: () => void): void {
    this.#time.done(this);
    const waitMs = this.#waitMs();
    if (waitMs <= 0) next();
    else setTimeout(next, waitMs);
  }

  /** The sandbox is gone; what waits is done, so that nothing stays open. */
  end(): void {
    clearTimeout(this.#timer);
    for (const work of this.#waiting.splice(0)) work();
    this.#time.forget(this);
  }

  #do(work: () => void): void {
    this.#time.begin(this);
    work();
    this.#time.done(this);
  }

  #waitMs(): number {
    return this.#freeAtMs - performance.now();
  }

  #wake(): void {
    this.#timer ??= setTimeout(
      () => {
        this.#timer = undefined;
        const until = performance.now() + turnMs;
        for (let done = 0; done === 0 || (this.#waitMs() <= 0 && performance.now() < until); done++) {
          const work = this.#waiting.shift();
          if (work === undefined) return;
          this.#do(work);
        }
        if (this.#waiting.length > 0) this.#wake();
      },
      Math.max(0, this.#waitMs()),
    );
  }
}
