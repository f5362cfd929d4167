/**
 * Takes a bundle that was made inside a sandbox into references of their own of the host's repository. Nothing is checked out, no
 * branch of the host moves, and nothing of the bundle is executed or obeyed.
 *
 * SECURITY: every byte of it is hostile. It is unpacked in a repository beside, with git's strict checks, and looked at there; only
 * then git fetches from there, all references or none. Whatever ends this in the middle leaves the host's repository as it was.
 */

import { createReadStream } from 'node:fs';
import { copyFile, mkdtemp, open, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SallyportError } from '../../protocol/errors.ts';
import { type BundleHeader, mostHeaderBytes, readBundleHeader, refused } from './bundle-header.ts';
import { type GitPlace, lineOf, mustGit, readBlobs, reasonOf, runGit, zeroSeparated } from './git-process.ts';
import { type HostRepository, openRepository } from './host-repository.ts';
import {
  foldedName,
  leadsToGit,
  linkInTheWay,
  readRawChanges,
  readTreePath,
  type TreePath,
  unwantedReference,
} from './hostile-names.ts';

export interface BundleWish {
  /** The root of a work tree on the host. */
  readonly repository: string;
  readonly environment: Readonly<Record<string, string>>;
  /** The references are made below `refs/sallyport/<space>/`. */
  readonly space: string;
  readonly chunks: AsyncIterable<Buffer>;
  readonly limits?: Partial<BundleLimits>;
  readonly signal?: AbortSignal;
}

export interface BundleLimits {
  readonly bundleBytes: number;
  readonly objects: number;
  /** Of all new objects, unpacked. */
  readonly unpackedBytes: number;
}

export interface TakenReference {
  /** Inside: `main`, or `HEAD`. */
  readonly branch: string;
  /** Here. */
  readonly ref: string;
  readonly commit: string;
}

export interface TakenCommits {
  readonly references: readonly TakenReference[];
  readonly leftOut: readonly { readonly branch: string; readonly why: string }[];
  /** How many commits are new. */
  readonly commits: number;
}

export const usualBundleLimits: BundleLimits = {
  bundleBytes: 2 ** 30,
  objects: 1_000_000,
  unpackedBytes: 8 * 2 ** 30,
};

export async function takeCommits(wish: BundleWish): Promise<TakenCommits> {
  const { environment, signal } = wish;
  const limits = { ...usualBundleLimits, ...wish.limits };
  const host = await openRepository({ folder: wish.repository, environment, signal });
  const temporary = await mkdtemp(join(tmpdir(), 'sallyport-commits-'));
  try {
    const file = join(temporary, 'commits.bundle');
    const header = await receive(wish.chunks, file, { host, limits });
    const quarantine = await makeQuarantine(host, join(temporary, 'quarantine.git'), header);
    await unpack(quarantine, file, header, limits);
    const { wanted, leftOut } = await chosen(host, quarantine, header, wish.space);
    if (wanted.length === 0) return { references: [], leftOut, commits: 0 };
    const commits = await judge(quarantine, wanted, limits);
    await fetchFrom(host, quarantine, wanted);
    return { references: wanted.map(({ slot: _, ...taken }) => taken), leftOut, commits };
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
}

/** To a file, within bounds; what it says of itself is read on the way. */
async function receive(
  chunks: AsyncIterable<Buffer>,
  path: string,
  { host, limits }: { readonly host: HostRepository; readonly limits: BundleLimits },
): Promise<BundleHeader> {
  const file = await open(path, 'wx', 0o600);
  let header: BundleHeader | undefined;
  let start = Buffer.alloc(0);
  let bytes = 0;
  try {
    for await (const chunk of chunks) {
      bytes += chunk.length;
      if (bytes > limits.bundleBytes) throw refused(`they are more than ${limits.bundleBytes} bytes`);
      if (header === undefined) {
        start = Buffer.concat([start, chunk.subarray(0, mostHeaderBytes)]);
        header = readBundleHeader(start, host.objectFormat);
      }
      await file.write(chunk);
    }
  } finally {
    await file.close();
  }
  if (header === undefined) throw refused('the bundle is cut off');
  return header;
}

/** An empty repository that sees the objects of the host's, and only those references that the bundle says it builds on. */
async function makeQuarantine(
  host: HostRepository,
  folder: string,
  { prerequisites }: BundleHeader,
): Promise<GitPlace> {
  const { environment, signal } = host.git;
  const beside: GitPlace = { folder: '/', environment, signal, isOurs: true };
  const kind = `--object-format=${host.objectFormat}`;
  await mustGit(beside, ['init', '--quiet', '--bare', '--template=', kind, folder]);
  await writeFile(join(folder, 'objects/info/alternates'), `${join(host.commonDir, 'objects')}\n`);
  await copyFile(join(host.commonDir, 'shallow'), join(folder, 'shallow')).catch((error: unknown) => {
    if (!isMissing(error)) throw error;
  });
  const quarantine: GitPlace = { folder, environment, signal, isOurs: true, hostile: true };
  for (const [index, commit] of prerequisites.entries()) {
    const kept = await runGit(quarantine, ['update-ref', `refs/base/${index}`, commit]);
    if (kept.code !== 0)
      throw refused(`it builds on ${commit.slice(0, 10)}, which is not in this repository`);
  }
  return quarantine;
}

const isMissing = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === 'ENOENT';

/**
 * The pack is unpacked by `index-pack --strict` itself: a fetch from a bundle checks no objects in git before 2.46, whatever
 * `transfer.fsckObjects` says.
 */
async function unpack(
  quarantine: GitPlace,
  file: string,
  header: BundleHeader,
  limits: BundleLimits,
): Promise<void> {
  const verified = await runGit(quarantine, ['bundle', 'verify', '--quiet', file]);
  if (verified.code !== 0) throw refused(reasonOf(verified.stderr));
  const pack = createReadStream(file, { start: header.bytes });
  const most = `--max-input-size=${limits.bundleBytes}`;
  const strict = ['-c', 'core.bigFileThreshold=16m', '-c', 'pack.threads=1', 'index-pack'];
  const unpacked = await runGit(quarantine, [...strict, '--stdin', '--fix-thin', '--strict', most], pack);
  if (unpacked.code !== 0) throw refused(reasonOf(unpacked.stderr));
}

interface Wanted extends TakenReference {
  /** In the quarantine: the names of the sandbox are nowhere used as they are. */
  readonly slot: string;
}

async function chosen(
  host: HostRepository,
  quarantine: GitPlace,
  { references }: BundleHeader,
  space: string,
): Promise<{ readonly wanted: readonly Wanted[]; readonly leftOut: TakenCommits['leftOut'] }> {
  const leftOut: { readonly branch: string; readonly why: string }[] = [];
  const wanted: Wanted[] = [];
  const taken = new Set<string>();
  for (const [index, { name, object }] of references.entries()) {
    const branch = name.replace(/^refs\/heads\//, '');
    const isBranch = name.startsWith('refs/heads/') || name === 'HEAD';
    // A HEAD that is on a branch comes with that branch.
    if (name === 'HEAD' && references.some((other) => other.name !== name && other.object === object))
      continue;
    const ref = `refs/sallyport/${space}/${branch}`;
    const why = isBranch
      ? (unwantedReference(branch, taken) ?? (await notACommit(quarantine, host, ref, object)))
      : 'it is no branch';
    if (why !== undefined) {
      leftOut.push({ branch: name, why });
      continue;
    }
    taken.add(foldedName(branch));
    const slot = `refs/taken/${index}`;
    await mustGit(quarantine, ['update-ref', slot, object]);
    wanted.push({ branch, ref, commit: object, slot });
  }
  return { wanted, leftOut };
}

async function notACommit(
  quarantine: GitPlace,
  { git }: HostRepository,
  ref: string,
  object: string,
): Promise<string | undefined> {
  if ((await runGit(git, ['check-ref-format', ref])).code !== 0) return 'its name is none that git takes';
  const kind = await runGit(quarantine, ['cat-file', '-t', object]);
  return kind.code === 0 && lineOf(kind.stdout) === 'commit' ? undefined : 'it is no commit';
}

/** How many commits are new. What a checkout could be harmed by is refused. */
async function judge(quarantine: GitPlace, wanted: readonly Wanted[], limits: BundleLimits): Promise<number> {
  const news = [...wanted.map(({ slot }) => slot), '--not', '--glob=refs/base/*'];
  const listed = await runGit(quarantine, ['rev-list', '--objects', '--no-object-names', ...news]);
  if (listed.code !== 0) throw refused(`objects are missing (${reasonOf(listed.stderr)})`);
  const objects = listed.stdout.toString('latin1').split('\n').length - 1;
  if (objects > limits.objects) throw refused(`they have more than ${limits.objects} objects`);
  const check = ['cat-file', '--batch-check=%(objecttype) %(objectsize)'];
  const sizes = (await mustGit(quarantine, check, listed.stdout)).toString('latin1').split('\n').slice(0, -1);
  const unpacked = sizes.reduce((sum, line) => sum + Number(line.split(' ')[1] ?? Number.NaN), 0);
  if (!(unpacked <= limits.unpackedBytes))
    throw refused(`they are ${unpacked} bytes when unpacked, more than ${limits.unpackedBytes}`);
  await judgePaths(quarantine, wanted, news);
  return sizes.filter((line) => line.startsWith('commit ')).length;
}

/** Of everything that any of the new commits has, also where a later one takes it away again: any of them may be checked out. */
async function judgePaths(
  quarantine: GitPlace,
  wanted: readonly Wanted[],
  news: readonly string[],
): Promise<void> {
  const paths: TreePath[] = [];
  for (const { slot } of wanted) {
    const listed = await runGit(quarantine, ['ls-tree', '-r', '-z', '--full-tree', slot]);
    if (listed.code !== 0) throw refused(`the files cannot be listed (${reasonOf(listed.stderr)})`);
    for (const entry of zeroSeparated(listed.stdout)) paths.push(readTreePath(entry));
  }
  const commits = await mustGit(quarantine, ['rev-list', ...news]);
  const options = ['-r', '-m', '--root', '-z', '--raw', '--no-commit-id', '--no-renames', '--no-abbrev'];
  const changed = await runGit(quarantine, ['diff-tree', '--stdin', ...options], commits);
  if (changed.code !== 0) throw refused(`the changes cannot be listed (${reasonOf(changed.stderr)})`);
  for (const path of readRawChanges(zeroSeparated(changed.stdout))) paths.push(path);
  const inTheWay = linkInTheWay(paths);
  if (inTheWay !== undefined) {
    throw refused(
      `the link ${JSON.stringify(inTheWay)} is in the way of other paths where case does not count`,
    );
  }
  const links = new Map(
    paths.filter(({ mode }) => mode === '120000').map(({ object, path }) => [object, path]),
  );
  const targets = await readBlobs(quarantine, [...links.keys()]);
  for (const [index, path] of [...links.values()].entries()) {
    if (leadsToGit(targets[index] ?? Buffer.alloc(0)))
      throw refused(`the link ${JSON.stringify(path)} leads into a .git`);
  }
}

async function fetchFrom(
  host: HostRepository,
  { folder }: GitPlace,
  wanted: readonly Wanted[],
): Promise<void> {
  const reads: GitPlace = { ...host.git, readsFiles: true };
  const settings = ['transfer.fsckObjects=true', 'core.logAllRefUpdates=always'].flatMap((one) => [
    '-c',
    one,
  ]);
  const options = ['--quiet', '--atomic', '--no-tags', '--no-write-fetch-head', '--no-recurse-submodules'];
  const specs = wanted.map(({ slot, ref }) => `+${slot}:${ref}`);
  const fetched = await runGit(reads, [...settings, 'fetch', ...options, '--', folder, ...specs]);
  if (fetched.code === 0) return;
  throw new SallyportError('git_failed', `git fetch failed in ${host.top}: ${reasonOf(fetched.stderr)}`, {
    details: { folder: host.top },
    advice:
      'Where an older reference is in the way, delete it: `git update-ref -d REF`; then call this again.',
  });
}

/** Names of sandboxes may have what git does not take in a reference; ids never have. */
export const referenceSpace = ({ name, id }: { readonly name: string; readonly id: string }): string =>
  name.includes('..') || name.endsWith('.lock') ? id : name;
