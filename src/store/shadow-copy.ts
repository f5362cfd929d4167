/**
 * The daemon-owned copy of a tool's folder, below the record of its sandbox: it is mounted there and goes with it. Nobody but
 * the daemon writes to it while it is made, and what is in its place is taken away first, so no link in it is ever met.
 */

import {
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  futimesSync,
  lchownSync,
  mkdirSync,
  openSync,
  writeFileSync,
} from 'node:fs';
import { chmod, lchown, mkdir, open, symlink, utimes } from 'node:fs/promises';
import { type HostEntry, joinPath, type LoadedEntry } from '../lib/host-tree.ts';
import { localDevice } from '../lib/local-disk.ts';
import { removeTree } from '../lib/remove-tree.ts';
import { SparseWriter } from '../lib/sparse-writer.ts';
import { Turns } from '../lib/turns.ts';
import type { BoxUser } from '../protocol/box.ts';
import { isSallyportError } from '../protocol/errors.ts';
import { stateFailure } from './state-failure.ts';
import { folderMode } from './state-folder.ts';

const newFile = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

export async function writeShadow(
  folder: string,
  entries: AsyncIterable<LoadedEntry>,
  user: BoxUser,
): Promise<void> {
  const root = Buffer.from(folder);
  // Only root can, and only a daemon of root has to: any other runs sandboxes that write here as itself.
  const owner = process.getuid?.() === 0 ? user : undefined;
  const own = async (path: Buffer): Promise<void> => {
    if (owner !== undefined) await lchown(path, owner.uid, owner.gid);
  };
  try {
    await removeTree(folder);
    await mkdir(folder, { recursive: true, mode: folderMode });
    await own(root);
    const isLocal = (await localDevice(root)) !== undefined;
    const turns = new Turns();
    for await (const entry of entries) {
      const path = joinPath(root, entry.path);
      await turns.take();
      if (isLocal && writeNow(path, entry, owner)) continue;
      await writeEntry(path, entry);
      await own(path);
    }
  } catch (cause) {
    // Half a copy is of no use, and may be large.
    await removeTree(folder).catch(() => {});
    // What the source's reader says is said in its own words.
    throw isSallyportError(cause) ? cause : stateFailure("copying a tool's folder", folder, cause);
  }
}

/** Folders and small files in blocking calls, which a folder of many takes a tenth of the time with. False: it is something else. */
function writeNow(path: Buffer, entry: LoadedEntry, owner: BoxUser | undefined): boolean {
  if (entry.kind === 'directory') {
    mkdirSync(path, { mode: entry.mode | 0o700 });
    if (owner !== undefined) lchownSync(path, owner.uid, owner.gid);
    return true;
  }
  if (entry.kind !== 'file' || entry.content === undefined) return false;
  const fd = openSync(path, newFile, 0o600);
  try {
    writeFileSync(fd, entry.content);
    if (owner !== undefined) fchownSync(fd, owner.uid, owner.gid);
    fchmodSync(fd, entry.mode);
    const seconds = secondsOf(entry);
    futimesSync(fd, seconds, seconds);
  } finally {
    closeSync(fd);
  }
  return true;
}

async function writeEntry(path: Buffer, entry: HostEntry): Promise<void> {
  switch (entry.kind) {
    case 'directory':
      await mkdir(path, { mode: entry.mode | 0o700 });
      return;
    case 'link':
      await symlink(entry.target, path);
      return;
    case 'file':
      await writeFile(path, entry);
      return;
    case 'other':
  }
}

async function writeFile(path: Buffer, entry: Extract<HostEntry, { kind: 'file' }>): Promise<void> {
  const handle = await open(path, newFile, 0o600);
  try {
    const writer = new SparseWriter(handle.fd);
    for await (const chunk of entry.chunks()) await writer.write(chunk);
    writer.end();
  } finally {
    await handle.close();
  }
  await chmod(path, entry.mode);
  const seconds = secondsOf(entry);
  await utimes(path, seconds, seconds);
}

const secondsOf = ({ mtimeNs }: HostEntry): number => Number(mtimeNs) / 1e9;
