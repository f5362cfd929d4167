/** Values that take their time to get, from a command or a keyring: kept in memory for a while, and nowhere else. */

export class RecentValues {
  readonly #known = new Map<string, { readonly value: Promise<string>; readonly untilMs: number }>();
  readonly #settled = new WeakMap<Promise<string>, string>();

  /** Several that ask at once wait for one answer. */
  async value(name: string, ttlMs: number, get: () => Promise<string>): Promise<string> {
    const known = this.#known.get(name);
    if (known !== undefined && known.untilMs > performance.now()) return await known.value;
    const value = get();
    this.#known.set(name, { value, untilMs: performance.now() + ttlMs });
    try {
      const settled = await value;
      this.#settled.set(value, settled);
      return settled;
    } catch (error) {
      // A failure is not kept: the next request may have better luck.
      if (this.#known.get(name)?.value === value) this.#known.delete(name);
      throw error;
    }
  }

  /** The last one, whatever its age; undefined: there is none yet. */
  last(name: string): string | undefined {
    const known = this.#known.get(name);
    return known === undefined ? undefined : this.#settled.get(known.value);
  }

  forget(name: string): void {
    this.#known.delete(name);
  }
}
