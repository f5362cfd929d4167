/**
 * Disk usage of files that have no name any more and that processes still hold open or mapped. Linux only.
 *
 * A walk over names does not find them, so a sandbox could fill the disk with them. Descriptors are read of each thread, because threads
 * may have tables of their own. A descriptor that is on its way through a socket is in no table and is not found.
 */

import { readdir, readlink, stat } from 'node:fs/promises';
import type { FolderUse } from './folder-use.ts';
import { runLowPriority } from './low-priority.ts';

export interface DeletedFilesRequest {
  readonly pids: readonly number[];
  readonly of: 'bytes' | 'files';
  /** Files on the file systems of these paths count. */
  readonly on: readonly string[];
  /** Files below these paths, as the processes see them, do not count. */
  readonly except: readonly string[];
  readonly signal?: AbortSignal | undefined;
}

interface Found {
  readonly blocks: number;
  readonly link: string;
}

const blockBytes = 512;
const pathsAtOnce = 2000;
const mostLinks = 20_000;

/** Not complete: this process may not see all that they hold, or there is no GNU find. */
export async function deletedFilesUse(request: DeletedFilesRequest): Promise<FolderUse> {
  const devices = await devicesOf(request.on);
  const folders = (await Promise.all(request.pids.map(foldersOf))).flat();
  // By inode alone: an overlay and the file system below it show one file with two devices.
  const found = new Map<string, Found>();
  const onLine = (line: string): void => {
    const [device = '', inode = '', blocks = '', link = ''] = line.split('\t');
    if (devices.has(device)) found.set(inode, { blocks: Number(blocks), link });
  };
  let isComplete = true;
  for (let from = 0; from < folders.length; from += pathsAtOnce) {
    const paths = folders.slice(from, from + pathsAtOnce);
    const { signal } = request;
    const { errors } = await runLowPriority('find', ['-L', ...paths, ...filter], { onLine, signal });
    if (errors > 0) isComplete = false;
  }
  const counted = await withoutPaths([...found.values()], request.except);
  const amount = counted.reduce(
    (sum, { blocks }) => sum + (request.of === 'bytes' ? blocks * blockBytes : 1),
    0,
  );
  return { amount, isComplete };
}

const filter = [
  '-mindepth',
  '1',
  '-maxdepth',
  '1',
  '-type',
  'f',
  '-links',
  '0',
  '-printf',
  '%D\\t%i\\t%b\\t%p\\n',
];

async function devicesOf(paths: readonly string[]): Promise<ReadonlySet<string>> {
  const stats = await Promise.all(paths.map((path) => stat(path, { bigint: true }).catch(() => undefined)));
  return new Set(stats.flatMap((found) => (found === undefined ? [] : [String(found.dev)])));
}

async function foldersOf(pid: number): Promise<readonly string[]> {
  const threads = await readdir(`/proc/${pid}/task`).catch(() => []);
  return [...threads.map((thread) => `/proc/${pid}/task/${thread}/fd`), `/proc/${pid}/map_files`];
}

/** The links have the paths that the files had. */
async function withoutPaths(found: readonly Found[], except: readonly string[]): Promise<readonly Found[]> {
  if (except.length === 0) return found;
  const isOutside = async ({ link }: Found): Promise<boolean> => {
    const path = await readlink(link).catch(() => '');
    return except.some((folder) => path.startsWith(`${folder}/`) || path === `${folder} (deleted)`);
  };
  const outside = await Promise.all(found.slice(0, mostLinks).map(isOutside));
  return found.filter((_, index) => outside[index] !== true);
}
