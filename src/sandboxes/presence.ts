/** Whether anybody is there: counts those who hold on, and calls when nobody has for a while. */

export class Presence {
  readonly #absenceMs: number;
  readonly #onAbsent: () => void;
  #count = 0;
  #timer: NodeJS.Timeout | undefined;
  #over = false;

  /** Nobody is there at first: the time begins with `watch`. */
  constructor(absenceMs: number, onAbsent: () => void) {
    this.#absenceMs = absenceMs;
    this.#onAbsent = onAbsent;
  }

  get count(): number {
    return this.#count;
  }

  watch(): void {
    if (this.#count > 0 || this.#over || this.#timer !== undefined) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#onAbsent();
    }, this.#absenceMs);
  }

  hold(): () => void {
    this.#count++;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      this.#count--;
      this.watch();
    };
  }

  end(): void {
    this.#over = true;
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}
