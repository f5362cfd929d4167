/**
 * The folder that an image is built from: what is in it after `.dockerignore`, with a digest of each thing. Times, owners and the
 * order of folders do not count; the x bit, the content and where a link leads do.
 *
 * SECURITY: a sandbox may have the same folder live and swap things in it. The walk goes from open folder to open folder and
 * follows no link, so nothing outside of it is read. A file with which all holes are too large is refused before it is read.
 */

import { createHash } from 'node:crypto';
import { type Dirent, lstatSync, readdirSync, readlinkSync, type Stats } from 'node:fs';
import { lstat, readdir, readlink } from 'node:fs/promises';
import { HoleBound, holeBytesOf } from '../../lib/hole-bound.ts';
import { hostEntry, smallFileNow } from '../../lib/host-tree.ts';
import { localDevice } from '../../lib/local-disk.ts';
import { OpenFolder } from '../../lib/open-folder.ts';
import { DockerFolder, type DockerPattern } from '../../policy/dockerignore.ts';
import { isProtectedPath } from '../../policy/protected-names.ts';
import type { CachedDigest } from '../ports.ts';
import { contextChanged, contextFailure, invalidName } from './context-failure.ts';

export interface ContextEntry {
  readonly path: string;
  readonly kind: 'file' | 'directory' | 'link';
  readonly executable: boolean;
  readonly sizeBytes: number;
  /** Where a link leads. */
  readonly target: string;
  /** For calls that want a path; good until the next entry is visited. */
  readonly at: string;
  /** Absent for a folder, of which nothing but its path counts. */
  readonly facts?: Stats;
}

/** Others get their turn after this long of blocking calls. */
const turnMs = 5;
const smallFileBytes = 64 * 1024;
/**
 * A file that changed so shortly before it was read may change again with the same time on it, as clocks of file systems go in
 * steps of up to 10 ms. Its digest is not kept.
 */
const racyMs = 100;

type Visit = (entry: ContextEntry) => Promise<void> | undefined;
type IsKnown = (path: string, facts: Stats) => boolean;

export interface ContextWalk {
  readonly visit: Visit;
  /** Whether a file is the very one that was read before. */
  readonly isKnown?: IsKnown;
  readonly signal?: AbortSignal | undefined;
}

/** Visits each thing that is not left out, folders before what is in them, in the order of their names. */
export async function walkContext(
  root: string,
  patterns: readonly DockerPattern[],
  options: ContextWalk,
): Promise<void> {
  let device: bigint | undefined;
  let folder: OpenFolder;
  try {
    device = await localDevice(Buffer.from(root));
    folder = OpenFolder.at(root);
  } catch (cause) {
    throw contextFailure('', cause);
  }
  try {
    const walk = { ...options, root, device, turn: { beganMs: performance.now() }, holes: new HoleBound() };
    const rules = patterns.length === 0 ? undefined : DockerFolder.root(patterns);
    await walkFolder({ folder, prefix: '', rules }, walk);
  } finally {
    folder.close();
  }
}

interface Walk extends ContextWalk {
  readonly root: string;
  readonly device: bigint | undefined;
  readonly turn: { beganMs: number };
  readonly holes: HoleBound;
}

interface Place {
  readonly folder: OpenFolder;
  /** Empty, or with a slash at its end. */
  readonly prefix: string;
  readonly rules: DockerFolder | undefined;
}

async function walkFolder({ folder, prefix, rules }: Place, walk: Walk): Promise<void> {
  const { visit, turn, signal, holes } = walk;
  // As text: names are UTF-8 here, and calls with a text are cheaper than those with bytes.
  const where = folder.path.toString('utf8');
  for (const found of await listed(folder, prefix, walk)) {
    const { name } = found;
    const path = prefix + name;
    if (name.includes('\uFFFD')) throw invalidName(path);
    const isFolder = found.isDirectory();
    const verdict = rules?.verdict(name, isFolder) ?? 'in';
    if (verdict === 'out') continue;
    // A sandbox that has this folder live holds the place of what is missing; that is nothing of the project's.
    if (isFolder && isProtectedPath(Buffer.from(path)) && (await isEmpty(folder, name, path, walk))) continue;
    if (performance.now() - turn.beganMs > turnMs) {
      await new Promise((resolve) => setImmediate(resolve));
      turn.beganMs = performance.now();
    }
    signal?.throwIfAborted();
    const inner = isFolder ? entered(folder, name, path) : undefined;
    try {
      if (verdict === 'in') {
        const at = `${where}/${name}`;
        const entry =
          inner === undefined
            ? (knownFile(found, path, at, walk) ?? (await look(path, at, walk)))
            : folderEntry(path, at);
        if (entry !== undefined) requireFewHoles(entry, holes);
        const visited = entry === undefined || isHeldFile(entry) ? undefined : visit(entry);
        if (visited !== undefined) await visited;
      }
      if (inner !== undefined)
        await walkFolder({ folder: inner, prefix: `${path}/`, rules: rules?.enter(name) }, walk);
    } finally {
      inner?.close();
    }
  }
}

function requireFewHoles({ kind, path, facts }: ContextEntry, holes: HoleBound): void {
  if (kind !== 'file' || facts === undefined) return;
  try {
    holes.add(path, holeBytesOf(facts));
  } catch (cause) {
    throw contextFailure(path, cause);
  }
}

/**
 * SECURITY: by its name, which costs half of what the way over the open folder costs, and which a sandbox may lead elsewhere at
 * any moment. So nothing is taken from it but that the file is the one that was read before: the same inode, unchanged.
 * Whatever else is found there is looked at again over the open folder.
 */
function knownFile(
  found: Dirent,
  path: string,
  at: string,
  { root, device, isKnown }: Walk,
): ContextEntry | undefined {
  if (isKnown === undefined || device === undefined || !found.isFile()) return undefined;
  try {
    const facts = lstatSync(`${root}/${path}`, { throwIfNoEntry: false });
    return facts?.isFile() === true && isKnown(path, facts) ? entryOf(path, at, facts, '') : undefined;
  } catch {
    return undefined;
  }
}

const folderEntry = (path: string, at: string): ContextEntry => ({
  path,
  at,
  kind: 'directory',
  executable: false,
  sizeBytes: 0,
  target: '',
});

function look(
  path: string,
  at: string,
  { device }: Walk,
): ContextEntry | undefined | Promise<ContextEntry | undefined> {
  return device === undefined ? lookAsync(path, at) : lookNow(path, at);
}

async function listed(folder: OpenFolder, prefix: string, { device }: Walk): Promise<readonly Dirent[]> {
  try {
    const options = { withFileTypes: true, encoding: 'utf8' } as const;
    const found =
      device === undefined ? await readdir(folder.path, options) : readdirSync(folder.path, options);
    return found.sort((a, b) => (a.name < b.name ? -1 : 1));
  } catch (cause) {
    throw contextFailure(prefix, cause);
  }
}

/** The same for files: a repository in use by a sandbox has these, with nothing in them that git would not assume. */
const isHeldFile = ({ path, kind, sizeBytes }: ContextEntry): boolean =>
  kind === 'file' && sizeBytes <= 2 && /(^|\/)\.git\/(commondir|config\.worktree)$/.test(path);

async function isEmpty(folder: OpenFolder, name: string, path: string, walk: Walk): Promise<boolean> {
  const inner = entered(folder, name, path);
  try {
    return (await listed(inner, path, walk)).length === 0;
  } finally {
    inner.close();
  }
}

function entered(folder: OpenFolder, name: string, path: string): OpenFolder {
  try {
    return folder.enter(Buffer.from(name));
  } catch (cause) {
    throw contextFailure(path, cause);
  }
}

function lookNow(path: string, at: string): ContextEntry | undefined {
  try {
    const facts = lstatSync(at);
    return entryOf(path, at, facts, facts.isSymbolicLink() ? readlinkSync(at) : '');
  } catch (cause) {
    throw contextFailure(path, cause);
  }
}

async function lookAsync(path: string, at: string): Promise<ContextEntry | undefined> {
  try {
    const facts = await lstat(at);
    return entryOf(path, at, facts, facts.isSymbolicLink() ? await readlink(at) : '');
  } catch (cause) {
    throw contextFailure(path, cause);
  }
}

/** Undefined for a device, a socket, a pipe: no build can copy one. */
function entryOf(path: string, at: string, facts: Stats, target: string): ContextEntry | undefined {
  const kind = facts.isFile() ? 'file' : facts.isDirectory() ? 'directory' : 'link';
  if (kind === 'link' && !facts.isSymbolicLink()) return undefined;
  if (target.includes('\uFFFD')) throw invalidName(path);
  const executable = kind === 'file' && (facts.mode & 0o111) !== 0;
  const sizeBytes = kind === 'file' ? facts.size : 0;
  return { path, kind, executable, sizeBytes, target, at, facts };
}

/** As it is in the list of inputs. */
export const fileDigest = (executable: boolean, sha256: string): string =>
  `${executable ? 'executable' : 'file'}:${sha256}`;

export function digestOf(
  entry: ContextEntry,
  cache: ReadonlyMap<string, CachedDigest>,
  keep: (seen: CachedDigest) => void,
  signal?: AbortSignal,
): string | Promise<string> {
  const { kind, path, facts, executable } = entry;
  if (kind === 'link') return `link:${createHash('sha256').update(entry.target).digest('hex')}`;
  if (facts === undefined) return 'directory';
  const known = cache.get(path);
  if (known !== undefined && isSeen(known.seen, facts)) {
    keep(known);
    return fileDigest(executable, known.digest);
  }
  const isRacy = Date.now() - Math.max(facts.mtimeMs, facts.ctimeMs) < racyMs;
  return readDigest(entry, facts, signal).then((digest) => {
    const { dev, ino, size, mtimeMs, ctimeMs } = facts;
    if (!isRacy) keep({ seen: [dev, ino, size, mtimeMs, ctimeMs], digest });
    return fileDigest(executable, digest);
  });
}

/** The inode's own time changes with its content, its mode and its owner, and no program can set it. */
export const isSeen = ([dev, ino, size, mtimeMs, ctimeMs]: CachedDigest['seen'], facts: Stats): boolean =>
  facts.ctimeMs === ctimeMs &&
  facts.mtimeMs === mtimeMs &&
  facts.ino === ino &&
  facts.size === size &&
  facts.dev === dev;

async function readDigest({ path, at }: ContextEntry, facts: Stats, signal?: AbortSignal): Promise<string> {
  const hash = createHash('sha256');
  try {
    const options = { mostBytes: smallFileBytes, device: BigInt(facts.dev) };
    const small =
      facts.size > smallFileBytes ? undefined : smallFileNow(Buffer.from(at), Buffer.from(path), options);
    if (small !== undefined) return hash.update(small.content).digest('hex');
    const entry = await hostEntry(Buffer.from(at), Buffer.from(path));
    if (entry.kind !== 'file') throw Object.assign(new Error('it is no file any more'), { code: 'ENOENT' });
    // SECURITY: the holes of the size that was seen first are what was counted.
    if (entry.sizeBytes !== facts.size) throw contextChanged(path);
    for await (const chunk of entry.chunks()) {
      signal?.throwIfAborted();
      hash.update(chunk);
    }
    return hash.digest('hex');
  } catch (cause) {
    throw contextFailure(path, cause);
  }
}
