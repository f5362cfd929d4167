/**
 * Changes of a sandbox as a commit on a new branch of the repository that was copied. The work tree, the index and HEAD stay
 * as they are: blobs, tree and commit are written by git's plumbing with an index of its own.
 *
 * SECURITY: contents and names are hostile. No hook, filter, file system monitor or transport of the repository is run.
 */

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type GitPlace, lineOf, mustGit, runGit } from '../agents/git/git-process.ts';
import { SallyportError } from '../protocol/errors.ts';

export interface BranchEntry {
  /** Relative to the folder. */
  readonly path: Buffer;
  /** Absent: it goes. */
  readonly now?: { readonly mode: '100644' | '100755' | '120000'; readonly read: () => Promise<Buffer> };
  /** As it was copied in, by the repository's own hash; absent: not known. */
  readonly baseHash?: (algorithm: 'sha1' | 'sha256') => Promise<string>;
}

export interface MadeBranch {
  readonly branch: string;
  readonly commit: string;
  readonly written: readonly Buffer[];
  readonly leftOut: readonly { readonly path: Buffer; readonly why: string }[];
  /** Were different from HEAD already when they were copied, or HEAD moved on: the commit has that difference as well. */
  readonly otherThanHead: readonly Buffer[];
}

export async function makeBranch(
  folder: string,
  environment: Readonly<Record<string, string>>,
  wish: { readonly branch: string; readonly message: string; readonly entries: readonly BranchEntry[] },
): Promise<MadeBranch> {
  const temporary = await mkdtemp(join(tmpdir(), 'sallyport-branch-'));
  const git = { folder, environment: { ...environment, GIT_INDEX_FILE: join(temporary, 'index') } };
  try {
    const head = await requireNewBranch(git, wish.branch);
    const prefix = Buffer.from(lineOf(await mustGit(git, ['rev-parse', '--show-prefix'])), 'latin1');
    await mustGit(git, ['read-tree', head]);
    const tracked = await trackedPaths(git, prefix);
    const { taken, leftOut } = await sorted(git, wish.entries, tracked);
    const blobs = await writeBlobs(git, temporary, taken);
    const news = taken.map(({ path, now }, index) =>
      Buffer.concat([
        Buffer.from(now === undefined ? `0 ${'0'.repeat(head.length)}\t` : `${now.mode} ${blobs[index]}\t`),
        prefix,
        path,
        Buffer.from([0]),
      ]),
    );
    await mustGit(git, ['update-index', '-z', '--index-info'], Buffer.concat(news));
    const tree = lineOf(await mustGit(git, ['write-tree']));
    const commit = lineOf(await mustGit(git, ['commit-tree', tree, '-p', head], Buffer.from(wish.message)));
    // The empty old value says that there must be none: another one that came meanwhile stays.
    await mustGit(git, ['update-ref', `refs/heads/${wish.branch}`, commit, '']);
    const algorithm = head.length === 40 ? 'sha1' : 'sha256';
    const otherThanHead: BranchEntry[] = [];
    for (const entry of taken) {
      const base = await entry.baseHash?.(algorithm);
      const atHead = tracked.get(entry.path.toString('latin1'))?.hash;
      if (base !== undefined && base !== atHead) otherThanHead.push(entry);
    }
    const paths = (entries: readonly BranchEntry[]): readonly Buffer[] => entries.map(({ path }) => path);
    return {
      branch: wish.branch,
      commit,
      written: paths(taken),
      leftOut,
      otherThanHead: paths(otherThanHead),
    };
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
}

/** The commit of HEAD, if a branch of this name can be made. */
async function requireNewBranch(git: GitPlace, branch: string): Promise<string> {
  const refuse = (why: string, advice: string): SallyportError =>
    new SallyportError('git_failed', why, { details: { folder: git.folder, branch }, advice });
  if ((await runGit(git, ['check-ref-format', `refs/heads/${branch}`])).code !== 0 || branch.startsWith('-'))
    throw refuse(`${JSON.stringify(branch)} is no name for a branch`, 'Choose another name.');
  const inside = await runGit(git, ['rev-parse', '--is-inside-work-tree']);
  if (inside.code !== 0) {
    const reason = inside.stderr.trim().split('\n')[0] ?? '';
    throw refuse(
      `${git.folder} is no repository of this user: ${reason}`,
      'Use `--patch` or `--to` instead.',
    );
  }
  if ((await runGit(git, ['rev-parse', '--verify', '--quiet', `refs/heads/${branch}`])).code === 0)
    throw refuse(
      `there is a branch ${branch} already in ${git.folder}`,
      'Choose another name, or delete it first.',
    );
  const head = await runGit(git, ['rev-parse', '--verify', '--quiet', 'HEAD^{commit}']);
  if (head.code !== 0)
    throw refuse(`${git.folder} has no commit yet`, 'Make a first commit, or use `--patch`.');
  return lineOf(head.stdout);
}

interface Tracked {
  readonly mode: string;
  readonly hash: string;
}

async function trackedPaths(git: GitPlace, prefix: Buffer): Promise<ReadonlyMap<string, Tracked>> {
  const listed = (await mustGit(git, ['ls-files', '-s', '-z', '--full-name'])).toString('latin1');
  const start = prefix.toString('latin1');
  const known = new Map<string, Tracked>();
  for (const entry of listed.split('\0')) {
    const found = /^(\d+) ([0-9a-f]+) \d\t([\s\S]*)$/.exec(entry);
    const [, mode = '', hash = '', path = ''] = found ?? [];
    if (path.startsWith(start)) known.set(path.slice(start.length), { mode, hash });
  }
  return known;
}

/** So that no name is taken for one of git's patterns, which begin with a colon. */
const here = Buffer.from('./');

/** Without what git would not add either: what is ignored, and what is inside of another repository. */
async function sorted(
  git: GitPlace,
  entries: readonly BranchEntry[],
  tracked: ReadonlyMap<string, Tracked>,
): Promise<{ readonly taken: readonly BranchEntry[]; readonly leftOut: MadeBranch['leftOut'] }> {
  const modules = [...tracked].filter(([, { mode }]) => mode === '160000').map(([path]) => `${path}/`);
  const isTracked = ({ path }: BranchEntry): boolean => tracked.has(path.toString('latin1'));
  const unknown = entries.filter((entry) => !isTracked(entry) && entry.now !== undefined);
  const asked = Buffer.concat(unknown.flatMap(({ path }) => [here, path, Buffer.from([0])]));
  const answer =
    unknown.length === 0 ? undefined : await runGit(git, ['check-ignore', '-z', '--stdin'], asked);
  if (answer !== undefined && answer.code > 1)
    throw new SallyportError('git_failed', `git check-ignore failed: ${answer.stderr.trim()}`);
  const ignored = new Set((answer?.stdout.toString('latin1') ?? '').split('\0'));
  const leftOut: { readonly path: Buffer; readonly why: string }[] = [];
  const taken = entries.filter((entry) => {
    const path = entry.path.toString('latin1');
    const isInModule = modules.some((module) => path.startsWith(module));
    if (isInModule) leftOut.push({ path: entry.path, why: 'it is in a submodule' });
    else if (ignored.has(`${here}${path}`)) leftOut.push({ path: entry.path, why: 'git ignores it' });
    else return entry.now !== undefined || isTracked(entry);
    return false;
  });
  return { taken, leftOut };
}

/** Their hashes, in the order of the entries. */
async function writeBlobs(
  git: GitPlace,
  temporary: string,
  entries: readonly BranchEntry[],
): Promise<readonly string[]> {
  const paths: string[] = [];
  for (const [index, { now }] of entries.entries()) {
    const path = join(temporary, `blob-${index}`);
    await writeFile(path, (await now?.read()) ?? '', { mode: 0o600, flag: 'wx' });
    paths.push(path);
  }
  const hashed = await mustGit(
    git,
    ['hash-object', '-w', '--no-filters', '--stdin-paths'],
    Buffer.from(`${paths.join('\n')}\n`),
  );
  return hashed.toString('latin1').trim().split('\n');
}
