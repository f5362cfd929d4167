/** Time limits on work that may never answer: a signal that fires at the caller's abort or at the deadline, and says which. */

export interface Deadline {
  readonly signal: AbortSignal;
  /** True when the time ran out, false when the caller aborted. */
  readonly expired: () => boolean;
  /** Must be called when the work is over, or the timer keeps the process alive. */
  readonly dispose: () => void;
}

/** `goOn` is asked when the time runs out: true gives it another `timeoutMs`, for work that is seen to advance. */
export function deadline(
  timeoutMs: number,
  parent?: AbortSignal,
  goOn: () => boolean = () => false,
): Deadline {
  const controller = new AbortController();
  let expired = false;
  // A longer timer would overflow and fire at once.
  const timer = setTimeout(
    () => {
      if (goOn()) {
        timer.refresh();
        return;
      }
      expired = true;
      controller.abort(new Error(`no answer within ${timeoutMs} ms`));
    },
    Math.min(timeoutMs, 2 ** 31 - 1),
  );
  const onAbort = (): void => controller.abort(parent?.reason);
  if (parent?.aborted) onAbort();
  else parent?.addEventListener('abort', onAbort, { once: true });
  return {
    signal: controller.signal,
    expired: () => expired,
    dispose: () => {
      clearTimeout(timer);
      parent?.removeEventListener('abort', onAbort);
    },
  };
}
