/**
 * Changes of a sandbox as a commit on a new branch of the repository that was copied. The work tree, the index and HEAD stay
 * as they are: blobs, tree and commit are written by git's plumbing with an index of its own.
 *
 * SECURITY: contents and names are hostile. No hook, filter, file system monitor or transport of the repository is run.
 */

import { rmSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type GitPlace, lineOf, mustGit, runGit } from '../agents/git/git-process.ts';
import { formatSize } from '../lib/sizes.ts';
import { SallyportError } from '../protocol/errors.ts';

export interface BranchEntry {
  /** Relative to the folder. */
  readonly path: Buffer;
  /** Absent: it goes. */
  readonly now?: {
    readonly mode: '100644' | '100755' | '120000';
    /** With its holes. */
    readonly sizeBytes: number;
    readonly content: () => AsyncIterable<Buffer> | Iterable<Buffer>;
  };
  /** As it was copied in, by the repository's own hash; absent: not known. */
  readonly baseHash?: (algorithm: 'sha1' | 'sha256') => Promise<string>;
}

export interface MadeBranch {
  readonly branch: string;
  /** Absent: nothing was left for a commit, and no branch was made. */
  readonly commit?: string;
  readonly written: readonly Buffer[];
  readonly leftOut: readonly { readonly path: Buffer; readonly why: string }[];
  /** Were different from HEAD already when they were copied, or HEAD moved on: the commit has that difference as well. */
  readonly otherThanHead: readonly Buffer[];
}

export interface BranchWish {
  readonly branch: string;
  readonly message: string;
  readonly entries: readonly BranchEntry[];
  readonly signal?: AbortSignal;
  readonly limits?: CommitLimits;
}

export interface CommitLimits {
  readonly fileBytes: number;
  readonly totalBytes: number;
}

/** A hole costs whoever made it nothing, and is written out in a repository. */
const usualLimits: CommitLimits = { fileBytes: 2 ** 30, totalBytes: 4 * 2 ** 30 };

export async function makeBranch(
  folder: string,
  environment: Readonly<Record<string, string>>,
  wish: BranchWish,
): Promise<MadeBranch> {
  const temporary = await mkdtemp(join(tmpdir(), 'sallyport-branch-'));
  // Also where a second signal ends this process at once.
  const removeAtExit = (): void => rmSync(temporary, { recursive: true, force: true });
  process.once('exit', removeAtExit);
  const own = { ...environment, GIT_INDEX_FILE: join(temporary, 'index') };
  try {
    return await makeBranchWith({ folder, environment: own, signal: wish.signal }, temporary, wish);
  } finally {
    await rm(temporary, { recursive: true, force: true });
    process.off('exit', removeAtExit);
  }
}

async function makeBranchWith(git: GitPlace, temporary: string, wish: BranchWish): Promise<MadeBranch> {
  const { branch, message, entries, limits = usualLimits } = wish;
  const head = await requireNewBranch(git, branch);
  const prefix = Buffer.from(lineOf(await mustGit(git, ['rev-parse', '--show-prefix'])), 'latin1');
  await mustGit(git, ['read-tree', head]);
  const tracked = await trackedPaths(git, prefix);
  const wanted = await sorted(git, entries, tracked);
  const { taken, tooLarge } = withinLimits(wanted.taken, limits);
  const leftOut = [...wanted.leftOut, ...tooLarge];
  if (taken.length === 0) return { branch, written: [], leftOut, otherThanHead: [] };
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
  const commit = lineOf(await mustGit(git, ['commit-tree', tree, '-p', head], Buffer.from(message)));
  const otherThanHead = await differingFromHead(taken, tracked, head.length === 40 ? 'sha1' : 'sha256');
  wish.signal?.throwIfAborted();
  // The empty old value says that there must be none: another one that came meanwhile stays. No signal ends this: a branch
  // that was made is not reported as cancelled.
  await mustGit({ ...git, signal: undefined }, ['update-ref', `refs/heads/${branch}`, commit, '']);
  return { branch, commit, written: taken.map(({ path }) => path), leftOut, otherThanHead };
}

async function differingFromHead(
  taken: readonly BranchEntry[],
  tracked: ReadonlyMap<string, Tracked>,
  algorithm: 'sha1' | 'sha256',
): Promise<readonly Buffer[]> {
  const paths: Buffer[] = [];
  for (const { path, baseHash } of taken) {
    const base = await baseHash?.(algorithm);
    if (base !== undefined && base !== tracked.get(path.toString('latin1'))?.hash) paths.push(path);
  }
  return paths;
}

/** SECURITY: sizes are chosen inside. Each file is written out as a whole, to a temporary folder and to the repository. */
function withinLimits(
  entries: readonly BranchEntry[],
  { fileBytes, totalBytes }: CommitLimits,
): { readonly taken: readonly BranchEntry[]; readonly tooLarge: MadeBranch['leftOut'] } {
  const tooLarge: { readonly path: Buffer; readonly why: string }[] = [];
  let total = 0;
  const taken = entries.filter(({ path, now }) => {
    const bytes = now?.sizeBytes ?? 0;
    const what = bytes > fileBytes ? 'it' : total + bytes > totalBytes ? 'with it the commit' : undefined;
    if (what === undefined) total += bytes;
    else {
      const most = formatSize(what === 'it' ? fileBytes : totalBytes);
      tooLarge.push({ path, why: `${what} has more than ${most}; \`sally cp\` copies it out` });
    }
    return what === undefined;
  });
  return { taken, tooLarge };
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

/** What waits in the temporary folder until git takes it, but for one file that has more. */
const waiting = { bytes: 64 * 2 ** 20, files: 1000 };

/** Their hashes, in the order of the entries. */
async function writeBlobs(
  git: GitPlace,
  temporary: string,
  entries: readonly BranchEntry[],
): Promise<readonly string[]> {
  const { signal } = git;
  const hashes: string[] = [];
  const folder = join(temporary, 'blobs');
  for (let next = 0; next < entries.length; ) {
    await mkdir(folder);
    const paths: string[] = [];
    for (
      let bytes = 0;
      next < entries.length && bytes < waiting.bytes && paths.length < waiting.files;
      next++
    ) {
      const now = entries[next]?.now;
      const path = join(folder, String(next));
      await writeFile(path, now?.content() ?? '', { mode: 0o600, flag: 'wx', signal });
      paths.push(path);
      bytes += now?.sizeBytes ?? 0;
    }
    const hash = ['hash-object', '-w', '--no-filters', '--stdin-paths'];
    const hashed = lineOf(await mustGit(git, hash, Buffer.from(`${paths.join('\n')}\n`)));
    for (const line of hashed.split('\n')) hashes.push(line);
    await rm(folder, { recursive: true });
  }
  return hashes;
}
