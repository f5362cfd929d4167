/**
 * Starts the lender of a sandbox when porter asks for it: a process of the engine's in the sandbox, which outlives this daemon. porter is
 * hostile input, so it gets one at a time, and one that asks again and again is answered ever less often.
 */

import type { BoxUser } from '../protocol/box.ts';
import type { BoxEngine } from './ports.ts';

const firstPauseMs = 1000;
const mostPauseMs = 60_000;

export interface LenderHost {
  readonly engine: Pick<BoxEngine, 'startLender'>;
  readonly now: () => number;
  readonly report: (error: unknown) => void;
}

export class LenderStarts {
  readonly #host: LenderHost;
  #isStarting = false;
  #nextMs = Number.NEGATIVE_INFINITY;
  #pauseMs = firstPauseMs;

  constructor(host: LenderHost) {
    this.#host = host;
  }

  /** Never rejects. */
  async wanted(boxId: string, user: BoxUser): Promise<void> {
    const { engine, now, report } = this.#host;
    if (this.#isStarting || now() < this.#nextMs) return;
    this.#isStarting = true;
    try {
      await engine.startLender?.(boxId, user);
    } catch (error) {
      report(error);
    } finally {
      this.#isStarting = false;
      this.#nextMs = now() + this.#pauseMs;
      this.#pauseMs = Math.min(this.#pauseMs * 2, mostPauseMs);
    }
  }
}
