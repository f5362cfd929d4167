/** The processes of a container, seen from the host, and what they wrote. Linux only. */

import { readdir, readFile, readlink } from 'node:fs/promises';

/**
 * All processes in the PID namespace of `firstPid`, and in the namespaces below. Undefined: `firstPid` is not in a namespace of its own, or
 * this process may not see that.
 */
export async function namespaceProcesses(firstPid: number): Promise<readonly number[] | undefined> {
  const [own, wanted] = await Promise.all([namespaceOf('self'), namespaceOf(firstPid)]);
  if (own === undefined || wanted === undefined || own === wanted) return undefined;
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number);
  const members = new Set<number>();
  const others = new Map<number, number>();
  await Promise.all(
    pids.map(async (pid) => {
      const namespace = await namespaceOf(pid);
      if (namespace === wanted) members.add(pid);
      else if (namespace !== undefined && namespace !== own) others.set(pid, await parentOf(pid));
    }),
  );
  // A process in a namespace below has an ancestor in the wanted one.
  for (let before = -1; before !== members.size; ) {
    before = members.size;
    for (const [pid, parent] of others) if (members.has(parent)) members.add(pid);
  }
  return [...members];
}

/**
 * Bytes that these processes, and those of their children that were waited for, gave to file systems. Too low if a parent ignores the end of
 * its children. Undefined: this process may not read it.
 */
export async function writtenBytes(pids: readonly number[]): Promise<number | undefined> {
  let sum: number | undefined;
  await Promise.all(
    pids.map(async (pid) => {
      const text = await readFile(`/proc/${pid}/io`, 'latin1').catch(() => '');
      const bytes = /^write_bytes: (\d+)$/m.exec(text)?.[1];
      if (bytes !== undefined) sum = (sum ?? 0) + Number(bytes);
    }),
  );
  return sum;
}

const namespaceOf = (pid: number | 'self'): Promise<string | undefined> =>
  readlink(`/proc/${pid}/ns/pid`).catch(() => undefined);

/** The name of a program may contain brackets; the parent follows its last one and the state. */
async function parentOf(pid: number): Promise<number> {
  const text = await readFile(`/proc/${pid}/stat`, 'latin1').catch(() => '');
  return Number(text.slice(text.lastIndexOf(')') + 2).split(' ')[1] ?? 0);
}
