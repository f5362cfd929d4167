/**
 * An iterator that can be stopped while it waits. A generator alone cannot: its `return()` stands in line behind the
 * `next()` that waits, perhaps for ever.
 */

export interface Stoppable<T> {
  /** Makes the values; must end soon after its signal is aborted. */
  readonly values: (signal: AbortSignal) => AsyncGenerator<T, void, undefined>;
  readonly signal?: AbortSignal | undefined;
  /** Once, however it ends: exhausted, failed, left by its reader, or aborted while nobody asks. */
  readonly onStop?: () => void;
}

/** Aborting ends it like its last value did: without an error. */
export function stoppable<T>(source: Stoppable<T>): AsyncIterableIterator<T> {
  const controller = new AbortController();
  const generator = source.values(controller.signal);
  let stopped = false;
  const stop = (): void => {
    if (stopped) return;
    stopped = true;
    source.signal?.removeEventListener('abort', stop);
    controller.abort();
    // One that stands at a value has files open, and nobody need ask it again.
    generator.return().catch(() => {});
    source.onStop?.();
  };
  if (source.signal?.aborted) stop();
  else source.signal?.addEventListener('abort', stop, { once: true });
  return {
    [Symbol.asyncIterator]() {
      return this;
    },
    next: async () => {
      if (stopped) return { done: true, value: undefined };
      try {
        const result = await generator.next();
        if (result.done) stop();
        return stopped ? { done: true, value: undefined } : result;
      } catch (error) {
        if (stopped) return { done: true, value: undefined };
        stop();
        throw error;
      }
    },
    return: async () => {
      stop();
      await generator.return();
      return { done: true, value: undefined };
    },
  };
}
