/** Tells a death for want of memory from any other KILL, by the counter that the kernel keeps for the sandbox. */

import type { Files } from '../porter/files.ts';

/** cgroup v1 and v2, as a container sees its own. */
const counterFiles = ['/sys/fs/cgroup/memory/memory.oom_control', '/sys/fs/cgroup/memory.events'];
const counterFileBytes = 4096;

export class MemoryDeaths {
  #seen = 0;
  /** Told by the engine, for runtimes that show no counter inside. */
  #told = false;

  engineTold(): void {
    this.#told = true;
  }

  /** A new container begins at zero. */
  reset(): void {
    this.#seen = 0;
    this.#told = false;
  }

  /** Since this was asked last. */
  async since(files: Files | undefined): Promise<boolean> {
    const count = files === undefined ? undefined : await readCounter(files);
    const told = this.#told;
    this.#told = false;
    // The engine tells late, and so of an earlier death: where the kernel's own count can be read it alone decides.
    if (count === undefined) return told;
    const more = count > this.#seen;
    this.#seen = count;
    return more;
  }
}

async function readCounter(files: Files): Promise<number | undefined> {
  for (const path of counterFiles) {
    const text = await files.readAll(path, counterFileBytes).catch(() => undefined);
    const count = text === undefined ? undefined : /^oom_kill (\d+)$/m.exec(text.toString('latin1'))?.[1];
    if (count !== undefined) return Number(count);
  }
  return undefined;
}
