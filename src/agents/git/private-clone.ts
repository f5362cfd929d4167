/**
 * A fresh repository with one branch of another: its history and its files, to be copied into a sandbox. Nothing else of the
 * repository is in it: no hooks, no configuration, no other branches, no credentials in the addresses of remotes.
 *
 * The host's repository is only read. Filters are not run, so files of Git LFS are pointers.
 */

import { mkdir } from 'node:fs/promises';
import { type GitPlace, lineOf, mustGit, runGit, zeroSeparated } from './git-process.ts';
import { type HostRepository, openRepository, startOf, uncommittedPaths } from './host-repository.ts';
import { publicRemotes } from './remote-urls.ts';

export interface CloneWish {
  /** The root of a work tree on the host. */
  readonly repository: string;
  /** Made from HEAD if there is none of the name; the host gets no branch by that. */
  readonly branch: string;
  /** Does not exist yet. */
  readonly folder: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

export interface MadeClone {
  /** What the branch is at. */
  readonly commit: string;
  readonly notes: readonly { readonly code: string; readonly message: string }[];
}

/** Where the clone keeps what it began with, so that only what came since is sent back. */
export const baseRef = 'refs/sallyport/base';

export async function makePrivateClone(wish: CloneWish): Promise<MadeClone> {
  const { branch, folder, environment, signal } = wish;
  const repository = await openRepository({ folder: wish.repository, environment, signal });
  const start = await startOf(repository, branch);
  await mkdir(folder, { mode: 0o700 });
  const clone: GitPlace = { folder, environment, signal, isOurs: true, readsFiles: true };
  const kind = `--object-format=${repository.objectFormat}`;
  await mustGit(clone, ['init', '--quiet', '--template=', kind, `--initial-branch=${branch}`]);
  const into = `${start.from}:refs/heads/${branch}`;
  const options = ['--quiet', '--no-tags', '--no-write-fetch-head', '--update-head-ok', '--update-shallow'];
  // Reflogs would tell the name of this machine.
  const silent = ['-c', 'core.logAllRefUpdates=false'];
  await mustGit(clone, [...silent, 'fetch', ...options, '--', repository.top, into]);
  const commit = lineOf(await mustGit(clone, ['rev-parse', `refs/heads/${branch}^{commit}`]));
  await mustGit(clone, [...silent, 'update-ref', baseRef, commit]);
  await mustGit(clone, [...silent, 'reset', '--quiet', '--hard']);
  await addRemotes(repository, clone);
  return { commit, notes: await notesOf(repository, clone, { branch, ...start, commit }) };
}

async function addRemotes({ git }: HostRepository, clone: GitPlace): Promise<void> {
  const listed = await runGit(git, ['config', '-z', '--get-regexp', '^remote\\..*\\.url$']);
  if (listed.code > 1) return;
  for (const [name, url] of publicRemotes(zeroSeparated(listed.stdout))) {
    await mustGit(clone, ['config', `remote.${name}.url`, url]);
  }
}

interface Cloned {
  readonly branch: string;
  readonly commit: string;
  readonly isNew: boolean;
}

async function notesOf(repository: HostRepository, clone: GitPlace, { branch, commit, isNew }: Cloned) {
  const notes: { readonly code: string; readonly message: string }[] = [];
  const short = commit.slice(0, 10);
  const made = isNew ? `, which is new and begins at HEAD (${short})` : ` at ${short}`;
  notes.push({ code: 'workspace_cloned', message: `works on a private clone of branch ${branch}${made}` });
  const head = await runGit(repository.git, ['rev-parse', '--verify', '--quiet', 'HEAD^{commit}']);
  const isHere = head.code === 0 && lineOf(head.stdout) === commit;
  const dirty = isHere ? await uncommittedPaths(repository).catch(() => 0) : 0;
  if (dirty > 0) {
    const message = `${dirty} paths of ${repository.top} are not committed and so are not in the clone`;
    notes.push({ code: 'clone_without_uncommitted', message });
  }
  const tracked = zeroSeparated(await mustGit(clone, ['ls-files', '-s', '-z']));
  const modules = tracked.filter((entry) => entry.startsWith('160000 ')).length;
  if (modules > 0)
    notes.push({
      code: 'clone_without_submodules',
      message: `${modules} submodules are empty folders inside`,
    });
  const large = await runGit(clone, ['grep', '-l', '-e', 'filter=lfs', 'HEAD', '--', '*.gitattributes']);
  if (large.code === 0) {
    const message = 'files of Git LFS are pointers inside: the objects are not part of the branch';
    notes.push({ code: 'clone_without_lfs', message });
  }
  return notes;
}
