/**
 * Changes of a sandbox as a commit on a new branch of the repository that was copied. The work tree, the index and HEAD stay
 * as they are: blobs, tree and commit are written by git's plumbing with an index of its own.
 *
 * SECURITY: contents and names are hostile. No hook, filter, file system monitor or transport of the repository is run.
 */

import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer, text } from 'node:stream/consumers';
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

const harmless = [
  'core.hooksPath=/dev/null',
  'core.fsmonitor=false',
  'core.sshCommand=false',
  'protocol.allow=never',
  'gc.auto=0',
].flatMap((setting) => ['-c', setting]);

interface Git {
  readonly folder: string;
  readonly environment: Readonly<Record<string, string>>;
}

interface Ran {
  readonly code: number;
  readonly stdout: Buffer;
  readonly stderr: string;
}

async function run(git: Git, args: readonly string[], input?: Buffer): Promise<Ran> {
  const env = {
    ...git.environment,
    GIT_NO_LAZY_FETCH: '1',
    GIT_TERMINAL_PROMPT: '0',
    LC_ALL: 'C',
  };
  const child = spawn('git', ['-C', git.folder, ...harmless, ...args], { env, stdio: 'pipe' });
  const ended = new Promise<number>((resolve, reject) => {
    child.once('error', (cause) =>
      reject(new SallyportError('git_failed', `git could not be started: ${cause.message}`, { cause })),
    );
    child.once('close', (code) => resolve(code ?? -1));
  });
  // One that ends early does not read all of it, and says why.
  child.stdin.on('error', () => {});
  child.stdin.end(input ?? '');
  const [code, stdout, stderr] = await Promise.all([ended, buffer(child.stdout), text(child.stderr)]);
  return { code, stdout, stderr };
}

async function must(git: Git, args: readonly string[], input?: Buffer): Promise<Buffer> {
  const { code, stdout, stderr } = await run(git, args, input);
  if (code === 0) return stdout;
  const [what] = args;
  throw new SallyportError(
    'git_failed',
    `git ${what} failed in ${git.folder}: ${stderr.trim().split('\n').at(-1)}`,
    {
      details: { folder: git.folder },
    },
  );
}

const line = (bytes: Buffer): string => bytes.toString('latin1').replace(/\n$/, '');

export async function makeBranch(
  folder: string,
  environment: Readonly<Record<string, string>>,
  wish: { readonly branch: string; readonly message: string; readonly entries: readonly BranchEntry[] },
): Promise<MadeBranch> {
  const temporary = await mkdtemp(join(tmpdir(), 'sallyport-branch-'));
  const git = { folder, environment: { ...environment, GIT_INDEX_FILE: join(temporary, 'index') } };
  try {
    const head = await requireNewBranch(git, wish.branch);
    const prefix = Buffer.from(line(await must(git, ['rev-parse', '--show-prefix'])), 'latin1');
    await must(git, ['read-tree', head]);
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
    await must(git, ['update-index', '-z', '--index-info'], Buffer.concat(news));
    const tree = line(await must(git, ['write-tree']));
    const commit = line(await must(git, ['commit-tree', tree, '-p', head], Buffer.from(wish.message)));
    // The empty old value says that there must be none: another one that came meanwhile stays.
    await must(git, ['update-ref', `refs/heads/${wish.branch}`, commit, '']);
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
async function requireNewBranch(git: Git, branch: string): Promise<string> {
  const refuse = (why: string, advice: string): SallyportError =>
    new SallyportError('git_failed', why, { details: { folder: git.folder, branch }, advice });
  if ((await run(git, ['check-ref-format', `refs/heads/${branch}`])).code !== 0 || branch.startsWith('-'))
    throw refuse(`${JSON.stringify(branch)} is no name for a branch`, 'Choose another name.');
  const inside = await run(git, ['rev-parse', '--is-inside-work-tree']);
  if (inside.code !== 0) {
    const reason = inside.stderr.trim().split('\n')[0] ?? '';
    throw refuse(
      `${git.folder} is no repository of this user: ${reason}`,
      'Use `--patch` or `--to` instead.',
    );
  }
  if ((await run(git, ['rev-parse', '--verify', '--quiet', `refs/heads/${branch}`])).code === 0)
    throw refuse(
      `there is a branch ${branch} already in ${git.folder}`,
      'Choose another name, or delete it first.',
    );
  const head = await run(git, ['rev-parse', '--verify', '--quiet', 'HEAD^{commit}']);
  if (head.code !== 0)
    throw refuse(`${git.folder} has no commit yet`, 'Make a first commit, or use `--patch`.');
  return line(head.stdout);
}

interface Tracked {
  readonly mode: string;
  readonly hash: string;
}

async function trackedPaths(git: Git, prefix: Buffer): Promise<ReadonlyMap<string, Tracked>> {
  const listed = (await must(git, ['ls-files', '-s', '-z', '--full-name'])).toString('latin1');
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
  git: Git,
  entries: readonly BranchEntry[],
  tracked: ReadonlyMap<string, Tracked>,
): Promise<{ readonly taken: readonly BranchEntry[]; readonly leftOut: MadeBranch['leftOut'] }> {
  const modules = [...tracked].filter(([, { mode }]) => mode === '160000').map(([path]) => `${path}/`);
  const isTracked = ({ path }: BranchEntry): boolean => tracked.has(path.toString('latin1'));
  const unknown = entries.filter((entry) => !isTracked(entry) && entry.now !== undefined);
  const asked = Buffer.concat(unknown.flatMap(({ path }) => [here, path, Buffer.from([0])]));
  const answer = unknown.length === 0 ? undefined : await run(git, ['check-ignore', '-z', '--stdin'], asked);
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
  git: Git,
  temporary: string,
  entries: readonly BranchEntry[],
): Promise<readonly string[]> {
  const paths: string[] = [];
  for (const [index, { now }] of entries.entries()) {
    const path = join(temporary, `blob-${index}`);
    await writeFile(path, (await now?.read()) ?? '', { mode: 0o600, flag: 'wx' });
    paths.push(path);
  }
  const hashed = await must(
    git,
    ['hash-object', '-w', '--no-filters', '--stdin-paths'],
    Buffer.from(`${paths.join('\n')}\n`),
  );
  return hashed.toString('latin1').trim().split('\n');
}
