/**
 * A worktree of the host's repository for one branch: the one that is there, or a new one beside the repository. A sandbox works
 * live on it; `policy/git-worktree.ts` says what of the repository it may write to.
 */

import { mkdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { branchSlug } from '../../policy/agent-name.ts';
import { type GitPlace, gitFailed, lineOf, mustGit, runGit } from './git-process.ts';
import { type HostRepository, openRepository, startOf, uncommittedPaths, unfit } from './host-repository.ts';

export interface WorktreeWish {
  /** The root of a work tree on the host. */
  readonly repository: string;
  /** Made from HEAD if there is none of the name. */
  readonly branch: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

export interface ProvidedWorktree {
  readonly folder: string;
  readonly isNew: boolean;
  /** What the branch was at. */
  readonly commit: string;
}

export async function provideWorktree(wish: WorktreeWish): Promise<ProvidedWorktree> {
  const { branch, environment, signal } = wish;
  const repository = await openRepository({ folder: wish.repository, environment, signal });
  const start = await startOf(repository, branch);
  const there = await worktreeOf(repository, branch);
  if (there !== undefined) return { folder: there, isNew: false, commit: start.commit };
  const main = dirname(repository.commonDir);
  const folder = join(dirname(main), `${basename(main)}.worktrees`, branchSlug(branch));
  await mkdir(dirname(folder), { recursive: true });
  const what = start.isNew ? ['-b', branch, folder, start.commit] : [folder, branch];
  const args = ['worktree', 'add', '--quiet', ...what];
  const added = await runGit(repository.git, args);
  if (added.code === 0) return { folder, isNew: true, commit: start.commit };
  // Another one may have been quicker.
  const meanwhile = await worktreeOf(repository, branch);
  if (meanwhile === undefined) throw gitFailed(repository.top, args, added.stderr);
  return { folder: meanwhile, isNew: false, commit: start.commit };
}

/** Commits since then, and paths that are not committed. */
export async function changesSince(git: GitPlace, commit: string): Promise<number> {
  const repository = await openRepository(git);
  const commits = Number(lineOf(await mustGit(git, ['rev-list', '--count', `${commit}..HEAD`])));
  return commits + (await uncommittedPaths(repository));
}

/** Where the branch is checked out; undefined: nowhere. The repository's own folder is refused. */
async function worktreeOf({ git, top }: HostRepository, branch: string): Promise<string | undefined> {
  const listed = (await mustGit(git, ['worktree', 'list', '--porcelain', '-z'])).toString('utf8');
  const [main, ...linked] = listed.split('\0\0').map(readWorktree);
  const isThere = (one: Worktree | undefined): boolean => one?.branch === `refs/heads/${branch}`;
  if (isThere(main)) {
    const where = main?.folder ?? top;
    const advice =
      'Choose another branch, or work on the folder itself: leave `--branch` and `--worktree` out.';
    throw unfit(`branch ${branch} is checked out in the repository's own folder, ${where}`, top, advice);
  }
  const found = linked.find(isThere);
  if (found?.isGone === true) {
    const advice = `\`git -C ${top} worktree prune\` forgets it.`;
    throw unfit(`branch ${branch} belongs to a worktree that is gone, ${found.folder}`, top, advice);
  }
  return found?.folder;
}

interface Worktree {
  readonly folder: string;
  readonly branch?: string;
  readonly isGone: boolean;
}

function readWorktree(text: string): Worktree {
  const lines = text.split('\0');
  const after = (word: string): string | undefined =>
    lines.find((line) => line.startsWith(`${word} `))?.slice(word.length + 1);
  const branch = after('branch');
  const isGone = lines.some((line) => line === 'prunable' || line.startsWith('prunable '));
  return { folder: after('worktree') ?? '', isGone, ...(branch === undefined ? {} : { branch }) };
}
