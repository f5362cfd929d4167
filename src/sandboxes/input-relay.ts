/**
 * Input on its way to a program over connections that may be lost: what the sandbox has not surely taken is kept, and sent
 * again on the next one. Bounded by the input window: whoever writes waits until there is room.
 */

import type { Exec } from '../porter/exec.ts';

export class InputRelay {
  #exec: Exec | undefined;
  /** How much had arrived when the current connection began. */
  #base = 0;
  /** Written and not surely taken; the first byte of it is number `#keptFrom`. */
  #kept: Buffer[] = [];
  #keptFrom = 0;
  #ended = false;
  #tail: Promise<void> = Promise.resolve();

  get taken(): number {
    this.#release();
    return this.#keptFrom;
  }

  begin(exec: Exec): void {
    this.#exec = exec;
  }

  /** A new connection; `arrived` bytes of all that was ever written are inside. */
  resume(exec: Exec, arrived: number): void {
    this.#dropBefore(arrived);
    // What an earlier daemon was given is not here to be sent again: its client sends it.
    this.#keptFrom = Math.max(this.#keptFrom, arrived);
    this.#base = arrived;
    this.#exec = exec;
    for (const chunk of this.#kept) void exec.write(chunk);
    if (this.#ended) exec.endStdin();
  }

  detach(): void {
    this.#release();
    this.#exec = undefined;
  }

  /** Resolves when there is room for more. */
  async write(data: Buffer): Promise<void> {
    const written = this.#tail.then(async () => {
      this.#kept.push(data);
      await this.#exec?.write(data);
      this.#release();
    });
    this.#tail = written;
    await written;
  }

  end(): void {
    this.#tail = this.#tail.then(() => {
      this.#ended = true;
      this.#exec?.endStdin();
    });
  }

  #release(): void {
    if (this.#exec !== undefined) this.#dropBefore(this.#base + this.#exec.inputTaken);
  }

  #dropBefore(offset: number): void {
    while (this.#keptFrom < offset) {
      const first = this.#kept[0];
      if (first === undefined) return;
      const drop = Math.min(first.length, offset - this.#keptFrom);
      this.#keptFrom += drop;
      if (drop === first.length) this.#kept.shift();
      else this.#kept[0] = first.subarray(drop);
    }
  }
}
