/**
 * What boxes of other daemons on this machine have mounted: another state folder's, or another user's if this is root. There is
 * nobody to ask, so the processes are looked at: bubblewrap's carries the box's name, and writes its complaints into the box's
 * folder. Whoever only looks like one makes things stay that could have gone, and no more.
 */

import { constants } from 'node:fs';
import { open, readdir, readFile, readlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { hostPlacesOf } from '../../protocol/box.ts';

const mostRecordBytes = 4 * 2 ** 20;
const nameShape = /^--name=(bw-[0-9a-f]{24})$/;

/** Paths of the host. `ownFolder`: where the boxes of this daemon are, which knows them better. */
export async function pathsOfOthers(ownFolder: string): Promise<readonly string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const folders = new Set((await Promise.all(pids.map(folderOf))).filter((path) => path !== undefined));
  const others = [...folders].filter((path) => dirname(path) !== ownFolder);
  return (await Promise.all(others.map(mountedBy))).flat();
}

/** Of the box whose bubblewrap this process is. One of another pid namespace is inside of something, and knows other paths. */
async function folderOf(pid: string): Promise<string | undefined> {
  try {
    const words = (await readFile(`/proc/${pid}/cmdline`, 'latin1')).split('\0');
    const id = words.map((word) => nameShape.exec(word)?.[1]).find((name) => name !== undefined);
    if (id === undefined) return undefined;
    const [complaints, theirs, ours] = await Promise.all([
      readlink(`/proc/${pid}/fd/2`),
      readlink(`/proc/${pid}/ns/pid`),
      readlink('/proc/self/ns/pid'),
    ]);
    const folder = dirname(complaints);
    return theirs === ours && basename(folder) === id ? folder : undefined;
  } catch {
    // It ended, or belongs to somebody else.
    return undefined;
  }
}

async function mountedBy(folder: string): Promise<readonly string[]> {
  try {
    const text = await readPlain(join(folder, 'box.json'));
    const { box } = JSON.parse(text) as { box: { mounts: readonly Readonly<Record<string, unknown>>[] } };
    return hostPlacesOf(
      box.mounts.flatMap(({ source, target }) =>
        typeof source === 'string' ? [{ source, target: typeof target === 'string' ? target : source }] : [],
      ),
    );
  } catch {
    return [];
  }
}

/** SECURITY: the place was named by a process of anybody's, so nothing is waited for there, followed, or read without end. */
async function readPlain(path: string): Promise<string> {
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
  try {
    const { size } = await file.stat();
    const content = Buffer.alloc(Math.min(size, mostRecordBytes));
    const { bytesRead } = await file.read(content, 0, content.length, 0);
    return content.toString('utf8', 0, bytesRead);
  } finally {
    await file.close();
  }
}
