/** Tells a death for want of memory from any other KILL, by the counter that the kernel keeps for the sandbox. */

import type { Files } from '../porter/files.ts';
import { isSallyportError } from '../protocol/errors.ts';

/** cgroup v1 and v2, as a container sees its own. */
const counterFiles = ['/sys/fs/cgroup/memory/memory.oom_control', '/sys/fs/cgroup/memory.events'];
const counterFileBytes = 4096;
const mostQuestions = 3;

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

  /** Since this was asked last. `answering`: the files of a connection that answers now, if there is one. */
  async since(answering: () => Promise<Files | undefined>): Promise<boolean> {
    const count = await readCounter(answering);
    const told = this.#told;
    this.#told = false;
    // The engine tells late, and so of an earlier death: where the kernel's own count can be read it alone decides.
    if (count === undefined) return told;
    const more = count > this.#seen;
    this.#seen = count;
    return more;
  }
}

/** A sandbox may be getting another connection right now, and a question is lost with the one before. */
async function readCounter(answering: () => Promise<Files | undefined>): Promise<number | undefined> {
  for (let question = 0; question < mostQuestions; question++) {
    const files = await answering();
    if (files === undefined) return undefined;
    try {
      return await readFrom(files);
    } catch (error) {
      if (!isSallyportError(error, 'porter_gone')) throw error;
    }
  }
  return undefined;
}

async function readFrom(files: Files): Promise<number | undefined> {
  for (const path of counterFiles) {
    const text = await files.readAll(path, counterFileBytes).catch((error: unknown) => {
      if (isSallyportError(error, 'porter_gone')) throw error;
      return undefined;
    });
    const count = text === undefined ? undefined : /^oom_kill (\d+)$/m.exec(text.toString('latin1'))?.[1];
    if (count !== undefined) return Number(count);
  }
  return undefined;
}
