/** Runs asynchronous work one after the other, in the order it came; a failure is its caller's and stops nobody. */

export class Serial {
  #tail: Promise<unknown> = Promise.resolve();

  async run<T>(work: () => Promise<T>): Promise<T> {
    const mine = this.#tail.then(work, work);
    this.#tail = mine.catch(() => {});
    return await mine;
  }
}
