/** Wakes everybody who waits for something to change. Whoever wakes looks again: a ring says that, not what. */

export class Bell {
  readonly #waiters = new Set<() => void>();

  ring(): void {
    const waiters = [...this.#waiters];
    this.#waiters.clear();
    for (const wake of waiters) wake();
  }

  /** Resolves at the next ring, or when aborted. */
  wait(signal?: AbortSignal): Promise<void> {
    if (signal?.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const wake = (): void => {
        signal?.removeEventListener('abort', wake);
        this.#waiters.delete(wake);
        resolve();
      };
      signal?.addEventListener('abort', wake, { once: true });
      this.#waiters.add(wake);
    });
  }
}
