/**
 * Work in blocking calls that lets others have their turn. A call to the file system by way of the thread pool takes several
 * times as long as the call itself, which counts where there are many; but nobody else runs, and no signal is heard, between.
 */

const turnMs = 5;

export class Turns {
  #beganMs = performance.now();

  /** Resolves in the same turn, unless this one is over. */
  async take(): Promise<void> {
    if (performance.now() - this.#beganMs <= turnMs) return;
    await pass();
    this.#beganMs = performance.now();
  }

  /** Everything that has come by now, signals too, is heard when this resolves. */
  async listen(): Promise<void> {
    // The first may end without a look at what has come: it is one after that look.
    await pass();
    await pass();
    this.#beganMs = performance.now();
  }
}

const pass = (): Promise<void> =>
  new Promise((resolve) => {
    setImmediate(resolve);
  });
