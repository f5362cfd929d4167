/**
 * The processes of a box, seen from the host: whether it runs, and its end.
 *
 * The keeper and bubblewrap append to the file `status`, whoever lives. A process id is believed only if the process still
 * carries the box's name on its command line: ids are given anew.
 */

import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as after } from 'node:timers/promises';
import { SallyportError } from '../../protocol/errors.ts';

export interface BoxStatusFile {
  /** The keeper, which becomes bubblewrap. */
  readonly keeperPid?: number;
  /** The first process of the box, by its number outside. */
  readonly firstPid?: number;
  readonly exitCode?: number;
}

/** Of the last run. */
export function readStatus(text: string): BoxStatusFile {
  let status: BoxStatusFile = {};
  for (const line of text.split('\n')) {
    const number = (name: string): number | undefined => {
      const found = new RegExp(`"${name}": (\\d{1,9})\\b`).exec(line)?.[1];
      return found === undefined ? undefined : Number(found);
    };
    const keeperPid = number('keeper-pid');
    const firstPid = number('child-pid');
    const exitCode = number('exit-code');
    // Each run begins with the keeper's line.
    if (keeperPid !== undefined) status = { keeperPid };
    if (firstPid !== undefined) status = { ...status, firstPid };
    if (exitCode !== undefined) status = { ...status, exitCode };
  }
  return status;
}

export const nameArgument = (id: string): string => `--name=${id}`;

/** A zombie has no command line, so it does not count. */
export async function isOfBox(pid: number, id: string): Promise<boolean> {
  const line = await readFile(`/proc/${pid}/cmdline`, 'latin1').catch(() => '');
  return line.split('\0').includes(nameArgument(id));
}

/** Where no process of it is known: one that died in the middle of a start may have left some. */
export async function processesOf(id: string): Promise<readonly number[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number);
  const found = await Promise.all(pids.map(async (pid) => ((await isOfBox(pid, id)) ? pid : undefined)));
  return found.filter((pid) => pid !== undefined);
}

export function sendSignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

const lookAgainMs = 4;
const exitingFlag = 0x4;

/**
 * Not before its own first process is done are the others of a box gone: while that one ends, the kernel kills them. By then it
 * has no command line any more, so its state is looked at.
 */
async function isEnding(pid: number): Promise<boolean> {
  const text = await readFile(`/proc/${pid}/stat`, 'latin1').catch(() => '');
  const [state, , , , , , flags] = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return text !== '' && state !== 'Z' && state !== 'X' && (Number(flags) & exitingFlag) !== 0;
}

/** False: they are still there after that time. */
export async function untilGone(pids: readonly number[], id: string, withinMs: number): Promise<boolean> {
  const until = performance.now() + withinMs;
  for (;;) {
    const left = await Promise.all(
      pids.map(async (pid) => (await isOfBox(pid, id)) || (await isEnding(pid))),
    );
    if (!left.includes(true)) return true;
    if (performance.now() >= until) return false;
    await after(lookAgainMs);
  }
}

const killWithinMs = 20_000;

/** All of it, and not before it is over. Its first process takes all others of the box with it; bubblewrap ends by itself. */
export async function killBox({ firstPid, keeperPid, exitCode }: BoxStatusFile, id: string): Promise<void> {
  const known = [firstPid, keeperPid].filter((pid) => pid !== undefined);
  const isRunning = firstPid !== undefined && (await isOfBox(firstPid, id));
  if (isRunning) sendSignal(firstPid, 'SIGKILL');
  // Nobody told of a first process, or of its end: all that carries the name is looked for.
  const lost = isRunning || exitCode !== undefined ? [] : await processesOf(id);
  for (const pid of lost) sendSignal(pid, 'SIGKILL');
  if (!(await untilGone([...known, ...lost], id, killWithinMs))) throw undead(id);
}

const undead = (id: string): SallyportError =>
  new SallyportError('engine_timeout', `the processes of box ${id} were killed and are still there`, {
    details: { box: id },
    advice: 'A process that waits for a disk or a network file system cannot be killed; see `dmesg`.',
  });
