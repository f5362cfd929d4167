/** The repository of a folder of the host, and whether a branch of it can be worked on. Reads, and changes nothing. */

import { realpath } from 'node:fs/promises';
import { SallyportError } from '../../protocol/errors.ts';
import { type GitPlace, lineOf, mustGit, reasonOf, runGit } from './git-process.ts';

export interface HostRepository {
  /** The root of the work tree; a real path. */
  readonly top: string;
  /** What is shared by all worktrees; absolute. */
  readonly commonDir: string;
  readonly objectFormat: 'sha1' | 'sha256';
  readonly git: GitPlace;
}

export interface BranchStart {
  /** What to take it from: the branch itself, or HEAD where there is none of the name. */
  readonly from: string;
  readonly commit: string;
  readonly isNew: boolean;
}

export function unfit(message: string, folder: string, advice?: string): SallyportError {
  const more = advice === undefined ? {} : { advice };
  return new SallyportError('repository_unfit', message, { details: { folder }, ...more });
}

export async function openRepository(git: GitPlace): Promise<HostRepository> {
  const { folder } = git;
  const asked = await runGit(git, ['rev-parse', '--is-inside-work-tree', '--show-toplevel']);
  const [isInside, top = ''] = asked.stdout.toString('utf8').split('\n');
  if (asked.code !== 0 || isInside !== 'true') {
    const why = asked.code === 0 ? 'it has no work tree' : reasonOf(asked.stderr);
    throw unfit(`${folder} is no git repository of this user: ${why}`, folder, 'Run `git init` and commit.');
  }
  const real = await realpath(folder);
  if ((await realpath(top)) !== real) {
    throw unfit(`${folder} is a folder inside the repository ${top}`, folder, `Name the repository: ${top}`);
  }
  const facts = ['rev-parse', '--path-format=absolute', '--git-common-dir', '--show-object-format'];
  const [commonDir = '', format] = (await mustGit(git, facts)).toString('utf8').split('\n');
  return { top: real, commonDir, objectFormat: format === 'sha256' ? 'sha256' : 'sha1', git };
}

/** A file of a reference has this name and `.lock` after it. */
const longestPart = 240;

export async function requireBranchName({ git }: HostRepository, branch: string): Promise<void> {
  const { folder } = git;
  const refuse = (why: string): SallyportError =>
    unfit(
      `${JSON.stringify(branch.slice(0, 100))} is no name for a branch: ${why}`,
      folder,
      'Choose another.',
    );
  if (branch.startsWith('-') || branch === 'HEAD') throw refuse('git takes it for something else');
  if (branch.includes('\0')) throw refuse('it has a NUL');
  if (branch.split('/').some((part) => Buffer.byteLength(part) > longestPart))
    throw refuse(`a part of it is longer than ${longestPart} bytes`);
  const checked = await runGit(git, ['check-ref-format', `refs/heads/${branch}`]);
  if (checked.code !== 0) throw refuse('git does not take it (spaces, "..", "~", "^", ":", "?", "*", "[")');
}

export async function startOf(repository: HostRepository, branch: string): Promise<BranchStart> {
  await requireBranchName(repository, branch);
  const { git, top } = repository;
  const commitOf = async (name: string): Promise<string | undefined> => {
    const { code, stdout } = await runGit(git, ['rev-parse', '--verify', '--quiet', `${name}^{commit}`]);
    return code === 0 ? lineOf(stdout) : undefined;
  };
  const ref = `refs/heads/${branch}`;
  const there = await commitOf(ref);
  if (there !== undefined) return { from: ref, commit: there, isNew: false };
  const head = await commitOf('HEAD');
  if (head === undefined) {
    throw unfit(
      `${top} has no commit yet, so there is nothing to start ${branch} from`,
      top,
      'Make a first commit.',
    );
  }
  return { from: 'HEAD', commit: head, isNew: true };
}

/** How many paths differ from HEAD, with those that git does not know yet. */
export async function uncommittedPaths({ git }: HostRepository): Promise<number> {
  const args = ['status', '--porcelain=v1', '-z', '--ignore-submodules=all', '--no-renames'];
  return (await mustGit(git, args)).toString('latin1').split('\0').length - 1;
}
