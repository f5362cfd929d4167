/** Processes as Linux shows them in /proc, identified so that a reused pid is never taken for the process it once was. */

import { readdir, readFile, readlink, stat } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';

export interface ProcessFacts {
  readonly pid: number;
  /** With the pid it identifies a process: start time in clock ticks since boot. */
  readonly startTicks: string;
  readonly parent: number;
  readonly argv: readonly string[];
  readonly uid: number;
  /** False for a process in a container, whose command line is whatever it likes to show. */
  readonly inOurPidNamespace: boolean;
}

/** Undefined when there is no such process; a zombie counts as gone. */
export async function readProcess(pid: number): Promise<ProcessFacts | undefined> {
  if (!Number.isSafeInteger(pid) || pid <= 1) return undefined;
  try {
    const folder = `/proc/${pid}`;
    const [statText, cmdline, owner, inOurPidNamespace] = await Promise.all([
      readFile(`${folder}/stat`, 'utf8'),
      readFile(`${folder}/cmdline`, 'utf8'),
      stat(folder),
      sharesPidNamespace(pid),
    ]);
    // The second field is the program's name in brackets and may hold anything, brackets too.
    const fields = statText.slice(statText.lastIndexOf(')') + 2).split(' ');
    const [state = '', parent = ''] = fields;
    const startTicks = fields[19];
    if (state === 'Z' || state === 'X' || startTicks === undefined) return undefined;
    const argv = cmdline.split('\0').slice(0, -1);
    return { pid, startTicks, parent: Number(parent), argv, uid: owner.uid, inOurPidNamespace };
  } catch {
    return undefined;
  }
}

async function sharesPidNamespace(pid: number): Promise<boolean> {
  try {
    return (await readlink(`/proc/${pid}/ns/pid`)) === (await readlink('/proc/self/ns/pid'));
  } catch {
    // Not ours to look at, and so not ours to signal either: the kernel will refuse.
    return true;
  }
}

export async function listProcesses(): Promise<readonly ProcessFacts[]> {
  const names = await readdir('/proc').catch(() => []);
  const all = await Promise.all(
    names.filter((name) => /^\d+$/.test(name)).map((name) => readProcess(Number(name))),
  );
  return all.filter((process) => process !== undefined);
}

export async function isAlive(process: ProcessFacts): Promise<boolean> {
  return (await readProcess(process.pid))?.startTicks === process.startTicks;
}

/** Signals exactly this process; false when it is gone. A process that may not be signalled throws EPERM. */
export async function signalProcess(target: ProcessFacts, signal: 'SIGTERM' | 'SIGKILL'): Promise<boolean> {
  if (!(await isAlive(target))) return false;
  try {
    process.kill(target.pid, signal);
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ESRCH') return false;
    throw error;
  }
}

/** /proc has no events for a process that is not our child, so this looks again every few milliseconds. */
export async function waitUntilGone(targets: readonly ProcessFacts[], timeoutMs: number): Promise<boolean> {
  const giveUpAt = performance.now() + timeoutMs;
  for (;;) {
    const alive = await Promise.all(targets.map(isAlive));
    if (!alive.includes(true)) return true;
    if (performance.now() >= giveUpAt) return false;
    await delay(25);
  }
}
