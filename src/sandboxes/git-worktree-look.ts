/** Finds the repository of a workspace whose `.git` is a file, and whether that repository knows of it. Reads, and changes nothing. */

import { constants } from 'node:fs';
import { lstat, open, realpath } from 'node:fs/promises';
import { basename, dirname, isAbsolute, join, resolve } from 'node:path';
import type { NoWorktree, WorktreeLook } from '../policy/git-worktree.ts';

const mostPointerBytes = 8192;
const writtenByCommits = ['objects', 'refs', 'logs'];

/** Undefined: `.git` is no such file. `folder` is a real path. */
export async function lookAtWorktree(folder: string): Promise<WorktreeLook | NoWorktree | undefined> {
  const pointer = await readPointer(join(folder, '.git'));
  const gitDir = /^gitdir: (.+)$/.exec(pointer ?? '')?.[1];
  if (gitDir === undefined) return undefined;
  if (!isAbsolute(gitDir) || (await realpath(gitDir).catch(() => undefined)) !== gitDir) {
    return { because: `it points to ${gitDir}, which is no real and absolute path` };
  }
  const commonDir = dirname(dirname(gitDir));
  if (basename(dirname(gitDir)) !== 'worktrees') return { because: `${gitDir} is not that of a worktree` };
  const back = await readPointer(join(gitDir, 'gitdir'));
  if (back === undefined || (await realpath(dirname(back)).catch(() => undefined)) !== folder) {
    return { because: `${gitDir} belongs to another folder` };
  }
  const common = await readPointer(join(gitDir, 'commondir'));
  if (common === undefined || resolve(gitDir, common) !== commonDir) {
    return { because: `${gitDir} names another repository than the one that it is in` };
  }
  const written: string[] = [];
  for (const name of writtenByCommits) if (await isFolder(join(commonDir, name))) written.push(name);
  return { commonDir, gitDir, written };
}

/**
 * Git writes to the file that says where the worktree is when it is a day old, and fails where it may not. Renewed by us it
 * leaves it alone. Where that is not allowed, because the file is somebody else's, git alone is the worse for it.
 */
export async function touchWorktree(gitDir: string): Promise<void> {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  const handle = await open(join(gitDir, 'gitdir'), flags).catch(() => undefined);
  if (handle === undefined) return;
  try {
    const now = new Date();
    await handle.utimes(now, now).catch(() => {});
  } finally {
    await handle.close();
  }
}

async function readPointer(path: string): Promise<string | undefined> {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  const handle = await open(path, flags).catch(() => undefined);
  if (handle === undefined) return undefined;
  try {
    const facts = await handle.stat();
    if (!facts.isFile() || facts.size > mostPointerBytes) return undefined;
    return (await handle.readFile('utf8')).trimEnd();
  } finally {
    await handle.close();
  }
}

async function isFolder(path: string): Promise<boolean> {
  return await lstat(path).then(
    (facts) => facts.isDirectory(),
    () => false,
  );
}
