/** Lets so many do something at a time; the others wait, in the order they came. */

export class Slots {
  readonly #waiting: (() => void)[] = [];
  #free: number;

  constructor(count: number) {
    this.#free = count;
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      // A slot that is handed on was never free: nobody can slip in between.
      if (next === undefined) this.#free++;
      else next();
    }
  }
}
