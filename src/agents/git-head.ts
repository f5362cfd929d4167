/**
 * Which branch a folder is on, read from the repository's own files: nothing of the repository is executed, and an owner that
 * git would not trust does not matter for a name.
 */

import { lstatSync, readFileSync, realpathSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';

export type GitHead =
  | { readonly kind: 'branch'; readonly branch: string }
  /** HEAD is a commit. */
  | { readonly kind: 'detached' }
  /** It is no repository. */
  | { readonly kind: 'folder' };

const mostBytes = 4096;

/** As a person would call it: the branch, or what there is instead. */
export const headText = (head: GitHead): string => branchOf(head) ?? `(${head.kind})`;

export const branchOf = (head: GitHead): string | undefined =>
  head.kind === 'branch' ? head.branch : undefined;

export function gitHead(folder: string): GitHead {
  const git = gitFolder(realpathSync(folder));
  const head = git === undefined ? undefined : smallFile(join(git, 'HEAD'));
  if (head === undefined) return { kind: 'folder' };
  const branch = /^ref: refs\/heads\/(.+)$/.exec(head.trimEnd())?.[1];
  return branch === undefined ? { kind: 'detached' } : { kind: 'branch', branch };
}

/** Of the nearest repository above; a worktree has a file that names its own. */
function gitFolder(start: string): string | undefined {
  for (let folder = start; ; folder = dirname(folder)) {
    const git = join(folder, '.git');
    const stat = lstatSync(git, { throwIfNoEntry: false });
    // An empty one is none, as git has it: a running sandbox holds the place of a missing one with it.
    if (stat?.isDirectory() && isThere(join(git, 'HEAD'))) return git;
    if (stat?.isFile()) {
      const to = /^gitdir: (.+)$/m.exec(smallFile(git) ?? '')?.[1];
      return to === undefined ? undefined : resolve(folder, to);
    }
    if (dirname(folder) === folder) return undefined;
  }
}

const isThere = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false }) !== undefined;

function smallFile(path: string): string | undefined {
  try {
    const stat = lstatSync(path);
    if (!stat.isFile() || stat.size > mostBytes) return undefined;
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}
