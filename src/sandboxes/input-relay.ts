/**
 * Input on its way to a program over connections that may be lost: what the sandbox has not surely taken is kept, and sent
 * again on the next one. Bounded by the input window: whoever writes waits until there is room.
 */

import { deferred } from '../lib/deferred.ts';
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
  /** Resolves with the next connection, or when there will be none. */
  #connected = deferred<void>();
  readonly #listeners = new Set<() => void>();

  get taken(): number {
    this.#release();
    return this.#keptFrom;
  }

  /** Called whenever more is taken: what was written on a lost connection is taken on the next, when nobody writes any more. */
  onTaken(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  begin(exec: Exec): void {
    this.#connect(exec);
  }

  /** A new connection; `arrived` bytes of all that was ever written are inside. */
  resume(exec: Exec, arrived: number): void {
    this.#dropBefore(arrived);
    // What an earlier daemon was given is not here to be sent again: its client sends it.
    this.#keptFrom = Math.max(this.#keptFrom, arrived);
    this.#base = arrived;
    for (const chunk of this.#kept) void exec.write(chunk);
    if (this.#ended) exec.endStdin();
    this.#connect(exec);
    this.#tell();
  }

  #connect(exec: Exec): void {
    this.#exec = exec;
    exec.onInputTaken = () => this.#tell();
    this.#connected.resolve();
  }

  detach(): void {
    this.#release();
    if (this.#exec === undefined) return;
    this.#exec.onInputTaken = () => {};
    this.#exec = undefined;
    this.#connected = deferred();
  }

  /** The program is over: nobody waits any longer. */
  close(): void {
    this.#connected.resolve();
  }

  /** Resolves when there is room for more. */
  async write(data: Buffer): Promise<void> {
    const written = this.#tail.then(async () => {
      this.#kept.push(data);
      // Without a connection there is room for this and no more.
      await (this.#exec?.write(data) ?? this.#connected.promise);
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

  #tell(): void {
    for (const listener of this.#listeners) listener();
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
