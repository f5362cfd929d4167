/**
 * Removes a folder that a sandbox has written to, whatever is in it. Node's own removal goes by whole paths: it fails on a tree
 * that is deeper than a path may be long, and on a folder that its owner may not enter.
 *
 * Nothing may run any more that writes to the folder. Links are removed, never followed.
 */

import { randomBytes } from 'node:crypto';
import { chmod, lstat, readdir, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';

/** Of what stays where it is. With the longest name that is still far from the end of what a path may be. */
const deepBytes = 2048;

export async function removeTree(root: string): Promise<void> {
  let isFlat = false;
  let opened = '';
  for (;;) {
    try {
      await rm(root, { recursive: true, force: true });
      return;
    } catch (error) {
      const { code, path = '' } = error as NodeJS.ErrnoException;
      if (code === 'ENAMETOOLONG' && !isFlat) {
        await flatten(root);
        isFlat = true;
      } else if ((code === 'EACCES' || code === 'EPERM') && path !== opened) {
        opened = path;
        await open(root, path);
      } else throw error;
    }
  }
}

/** Folders that are deep in the tree become folders right below the root, in one walk through all of it. */
async function flatten(root: string): Promise<void> {
  // As latin1 each byte of a name is one character, whatever its encoding.
  const top = Buffer.from(root).toString('latin1');
  const waiting = [top];
  for (let folder = waiting.pop(); folder !== undefined; folder = waiting.pop()) {
    let at = folder;
    if (at.length > top.length + deepBytes) {
      at = `${top}/.sallyport-${randomBytes(8).toString('hex')}`;
      await rename(bytes(folder), bytes(at));
    }
    const entries = await readdir(bytes(at), { withFileTypes: true, encoding: 'buffer' });
    for (const entry of entries)
      if (entry.isDirectory()) waiting.push(`${at}/${entry.name.toString('latin1')}`);
  }
}

const bytes = (path: string): Buffer => Buffer.from(path, 'latin1');

/** What cannot be listed, or has something in it that cannot be removed, is its owner's to open. */
async function open(root: string, path: string): Promise<void> {
  for (const folder of path === root ? [path] : [dirname(path), path]) {
    const facts = await lstat(folder);
    if (facts.isDirectory()) await chmod(folder, 0o700);
  }
}
