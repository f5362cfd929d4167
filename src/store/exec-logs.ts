/**
 * The logs that are open: one object for each exec, however many ask for it, because a log has one writer. Those of execs
 * that ended stay for a while, with little output in memory, as somebody is likely to ask for the result.
 */

import type { ExecId, SandboxId } from '../protocol/ids.ts';
import { ExecLogFiles, openExecLog } from './exec-log.ts';

const endedKept = 64;

interface Entry {
  readonly sandbox: SandboxId;
  readonly log: Promise<ExecLogFiles>;
}

export class ExecLogs {
  readonly #open = new Map<ExecId, Entry>();
  /** The one that ended first comes first. */
  readonly #ended = new Map<ExecId, ExecLogFiles>();

  /** Of an exec that has just begun: nothing of it can be on disk, so nobody has to look. */
  begin(sandbox: SandboxId, exec: ExecId, folder: string): void {
    const log = new ExecLogFiles(folder, [], { onEnd: (ended) => this.#keepEnded(exec, ended) });
    this.#open.set(exec, { sandbox, log: Promise.resolve(log) });
  }

  get(sandbox: SandboxId, exec: ExecId, folder: string, over: boolean): Promise<ExecLogFiles> {
    const known = this.#open.get(exec);
    if (known) return known.log;
    const log = openExecLog(folder, { over, onEnd: (ended) => this.#keepEnded(exec, ended) });
    const entry = { sandbox, log };
    this.#open.set(exec, entry);
    log.then(
      (opened) => {
        if (over) this.#keepEnded(exec, opened);
      },
      () => {
        // The next one who asks tries again.
        if (this.#open.get(exec) === entry) this.#open.delete(exec);
      },
    );
    return log;
  }

  has(exec: ExecId): boolean {
    return this.#open.has(exec);
  }

  /** Readers and writers come to their end. */
  async close(exec: ExecId): Promise<void> {
    const entry = this.#open.get(exec);
    this.#open.delete(exec);
    this.#ended.delete(exec);
    const log = await entry?.log.catch(() => undefined);
    await log?.close();
  }

  async closeAllOf(sandbox: SandboxId): Promise<void> {
    const execs = [...this.#open].flatMap(([exec, entry]) => (entry.sandbox === sandbox ? [exec] : []));
    await Promise.all(execs.map((exec) => this.close(exec)));
  }

  async closeAll(): Promise<void> {
    await Promise.all([...this.#open.keys()].map((exec) => this.close(exec)));
  }

  #keepEnded(exec: ExecId, log: ExecLogFiles): void {
    if (!this.#open.has(exec)) return;
    this.#ended.set(exec, log);
    for (const [oldest, forgotten] of this.#ended) {
      if (this.#ended.size <= endedKept) return;
      this.#ended.delete(oldest);
      this.#open.delete(oldest);
      // Whoever still has the object reads from the disk.
      forgotten.forgetRecent();
    }
  }
}
