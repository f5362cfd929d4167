/** The same work wanted by several at once is done once. It is cancelled when the last who waits for it has gone. */

import type { Progress } from '../../lib/progress.ts';
import { SallyportError } from '../../protocol/errors.ts';

interface UnderWay<T> {
  readonly result: Promise<T>;
  readonly listeners: Set<Progress>;
  readonly abort: AbortController;
  waiting: number;
}

export interface Waiter {
  readonly progress: Progress;
  readonly signal?: AbortSignal | undefined;
}

export class SharedWork<T> {
  readonly #underWay = new Map<string, UnderWay<T>>();

  async join(
    key: string,
    { progress, signal }: Waiter,
    begin: (progress: Progress, signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    if (signal?.aborted === true) throw cancelled(signal.reason);
    const work = this.#underWay.get(key) ?? this.#begin(key, begin);
    work.listeners.add(progress);
    work.waiting++;
    try {
      return await orGone(work.result, signal);
    } finally {
      work.listeners.delete(progress);
      work.waiting--;
      if (work.waiting === 0) {
        // Whoever comes now begins anew: this one is on its way out.
        if (this.#underWay.get(key) === work) this.#underWay.delete(key);
        work.abort.abort();
      }
    }
  }

  #begin(key: string, begin: (progress: Progress, signal: AbortSignal) => Promise<T>): UnderWay<T> {
    const listeners = new Set<Progress>();
    const abort = new AbortController();
    const result = begin((event) => {
      for (const listener of listeners) listener(event);
    }, abort.signal);
    result.catch(() => {});
    const work = { result, listeners, abort, waiting: 0 };
    this.#underWay.set(key, work);
    const done = (): void => {
      if (this.#underWay.get(key) === work) this.#underWay.delete(key);
    };
    result.then(done, done);
    return work;
  }
}

async function orGone<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return await work;
  let onAbort = (): void => {};
  const gone = new Promise<never>((_, reject) => {
    onAbort = () => reject(cancelled(signal.reason));
    signal.addEventListener('abort', onAbort, { once: true });
  });
  try {
    return await Promise.race([work, gone]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

const cancelled = (cause: unknown): SallyportError =>
  new SallyportError('cancelled', 'building the image was cancelled', { cause });
