/**
 * The daemon-owned copy of a tool's folder, below the record of its sandbox: it is mounted there and goes with it. Nobody but
 * the daemon writes to it while it is made, and what is in its place is taken away first, so no link in it is ever met.
 */

import { constants } from 'node:fs';
import { chmod, lchown, mkdir, open, symlink, utimes } from 'node:fs/promises';
import { type HostEntry, joinPath } from '../lib/host-tree.ts';
import { removeTree } from '../lib/remove-tree.ts';
import type { BoxUser } from '../protocol/box.ts';
import { isSallyportError } from '../protocol/errors.ts';
import { stateFailure } from './state-failure.ts';
import { folderMode } from './state-folder.ts';

export async function writeShadow(
  folder: string,
  entries: AsyncIterable<HostEntry>,
  owner: BoxUser,
): Promise<void> {
  const root = Buffer.from(folder);
  // Only root can, and only a daemon of root has to: any other runs sandboxes that write here as itself.
  const own = async (path: Buffer): Promise<void> => {
    if (process.getuid?.() === 0) await lchown(path, owner.uid, owner.gid);
  };
  try {
    await removeTree(folder);
    await mkdir(folder, { recursive: true, mode: folderMode });
    await own(root);
    for await (const entry of entries) {
      const path = joinPath(root, entry.path);
      await writeEntry(path, entry);
      await own(path);
    }
  } catch (cause) {
    // What the source's reader says is said in its own words.
    throw isSallyportError(cause) ? cause : stateFailure("copying a tool's folder", folder, cause);
  }
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
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
  const handle = await open(path, flags, 0o600);
  try {
    for await (const chunk of entry.chunks()) await handle.writeFile(chunk);
  } finally {
    await handle.close();
  }
  await chmod(path, entry.mode);
  const seconds = Number(entry.mtimeNs) / 1e9;
  await utimes(path, seconds, seconds);
}
