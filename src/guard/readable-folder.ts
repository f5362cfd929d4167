/**
 * The working folder as a guarded sandbox may have it. The user there is nobody: a folder that others may not read is copied to a
 * place from which only a mount leads to it, with rights to read for all. The folder itself is never changed.
 */

import { constants, type Stats } from 'node:fs';
import { chmod, lstat, mkdir, open, readdir, readlink, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { guardCopyName } from '../protocol/guard-copy-place.ts';
import { newGuardCopy, sweepGuardCopies } from './guard-copies.ts';

export interface ReadableFolder {
  /** Absent: the folder cannot be given. */
  readonly path?: string;
  readonly isCopy: boolean;
  /** What whoever reads the result should know. */
  readonly note?: string;
  readonly remove: () => Promise<void>;
}

export interface CopyLimits {
  readonly entries: number;
  readonly bytes: number;
}

export const copyLimits: CopyLimits = { entries: 20_000, bytes: 256 * 1024 * 1024 };

/** Of a large tree the upper levels are looked at: a command should not wait for more. */
const lookedAt = 2000;
const othersRead = 0o004;
const othersEnter = 0o005;
const nothing = async (): Promise<void> => {};

/** A copy is below `stateDir`; what killed processes left there goes first. */
export async function readableFolder(
  folder: string,
  stateDir: string,
  limits: CopyLimits = copyLimits,
): Promise<ReadableFolder> {
  await sweepGuardCopies(stateDir);
  const found = await findClosed(folder, Math.min(limits.entries, lookedAt));
  if (found === undefined) return { path: folder, isCopy: false, remove: nothing };
  // SECURITY: other users of this machine do not get past this folder. A mount starts below it.
  const outer = await newGuardCopy(stateDir);
  const remove = async (): Promise<void> => await rm(outer, { recursive: true, force: true });
  try {
    const copy = new FolderCopy(limits);
    const path = join(outer, guardCopyName);
    await copy.folder(folder, path);
    if (!copy.isOver) {
      return {
        path,
        isCopy: true,
        note: 'it had a copy of this folder, which the user nobody may not read',
        remove,
      };
    }
  } catch (error) {
    await remove();
    throw error;
  }
  await remove();
  const most = `${limits.entries} files and ${Math.round(limits.bytes / 1024 / 1024)} MB`;
  return {
    isCopy: false,
    note: `it did not have this folder: the user nobody may not read ${found}, and a copy would be more than ${most}`,
    remove: nothing,
  };
}

/** The first of the folder's entries that others may not read, level by level. */
async function findClosed(folder: string, most: number): Promise<string | undefined> {
  const queue = [folder];
  for (let at = 0; at < Math.min(queue.length, most); at++) {
    const path = queue[at] ?? folder;
    const stats = await lstat(path).catch(() => undefined);
    // Gone meanwhile.
    if (stats === undefined) continue;
    const needed = stats.isDirectory() ? othersEnter : othersRead;
    if (!stats.isSymbolicLink() && (stats.mode & needed) !== needed) return path;
    if (stats.isDirectory() && queue.length < most) {
      for (const name of await readdir(path).catch(() => [])) queue.push(join(path, name));
    }
  }
  return undefined;
}

/** What this user may not read, or what is gone meanwhile, a command on the host would not have had either. */
function passOver(error: NodeJS.ErrnoException): void {
  if (!['EACCES', 'EPERM', 'ENOENT', 'ELOOP'].includes(error.code ?? '')) throw error;
}

class FolderCopy {
  readonly #limits: CopyLimits;
  #entries = 0;
  #bytes = 0;

  constructor(limits: CopyLimits) {
    this.#limits = limits;
  }

  get isOver(): boolean {
    return this.#entries > this.#limits.entries || this.#bytes > this.#limits.bytes;
  }

  async folder(from: string, to: string): Promise<void> {
    await mkdir(to);
    for (const name of await readdir(from)) {
      this.#entries += 1;
      if (this.isOver) return;
      await this.#entry(join(from, name), join(to, name)).catch(passOver);
    }
    await chmod(to, 0o755);
  }

  async #entry(from: string, to: string): Promise<void> {
    const stats = await lstat(from);
    if (stats.isDirectory()) await this.folder(from, to);
    else if (stats.isSymbolicLink()) await symlink(await readlink(from), to);
    else if (stats.isFile()) await this.#file(from, to, stats);
  }

  /** SECURITY: what has become a link or a pipe since it was looked at is not opened. */
  async #file(from: string, to: string, { size, mode }: Stats): Promise<void> {
    this.#bytes += size;
    if (this.isOver) return;
    const source = await open(from, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      if (!(await source.stat()).isFile()) return;
      const target = await open(to, 'wx', 0o600);
      try {
        await this.#bytesOf(source, target, size);
        await target.chmod((mode & 0o100) === 0 ? 0o644 : 0o755);
      } finally {
        await target.close();
      }
    } finally {
      await source.close();
    }
  }

  /** At most what it had when it was looked at: a file that grows has no end. */
  async #bytesOf(
    source: Awaited<ReturnType<typeof open>>,
    target: Awaited<ReturnType<typeof open>>,
    size: number,
  ): Promise<void> {
    const block = Buffer.allocUnsafe(Math.max(1, Math.min(size, 1024 * 1024)));
    for (let left = size; left > 0; ) {
      const { bytesRead } = await source.read(block, 0, Math.min(block.length, left));
      if (bytesRead === 0) return;
      await target.write(block.subarray(0, bytesRead));
      left -= bytesRead;
    }
  }
}
