/**
 * What is different in a copied workspace from what was put in, less what is left out of the copy, and how the baseline moves on when changes were brought
 * back. Everything inside is read and hashed: size and times of a file are whatever a program inside says they are.
 */

import { ContentHash, hashLike, holesPrefix } from '../lib/content-hash.ts';
import { withZeros } from '../lib/holes.ts';
import type { CopiedExcludes } from '../policy/copied-excludes.ts';
import type { Files, TreeLimits } from '../porter/files.ts';
import { TreeOrder } from '../porter/tree-order.ts';
import { isSallyportError, SallyportError } from '../protocol/errors.ts';
import {
  isSame,
  keyOf,
  type Mark,
  mostChangedBytes,
  mostChanges,
  mostCompared,
  mostKeptFileBytes,
  pathOfKey,
  placeFor,
  readMark,
  writeMark,
} from './baseline.ts';
import type { BaselineWriter } from './ports.ts';
import type { Marks, SandboxRecord } from './records.ts';

export interface WorkspaceChange {
  /** Relative to the workspace. */
  readonly path: Buffer;
  /** As it was put in; absent: it was not there. */
  readonly before?: Mark;
  /** As it is inside; absent: it is gone. */
  readonly after?: Mark;
}

/** In the order of the paths' bytes, so that a folder comes before what is in it. */
export async function workspaceChanges(
  files: Files,
  target: string,
  {
    marks,
    excludes,
    most = mostChanges,
    mostBytes = mostChangedBytes,
    limits = mostCompared,
  }: {
    readonly marks: Marks;
    readonly excludes: CopiedExcludes;
    readonly most?: number;
    readonly mostBytes?: number;
    readonly limits?: TreeLimits;
  },
  signal?: AbortSignal,
): Promise<readonly WorkspaceChange[]> {
  const missing = new Set(Object.keys(marks));
  const changes: WorkspaceChange[] = [];
  const hollow: WorkspaceChange[] = [];
  const budget = new CompareBudget(limits);
  let keptBytes = 0;
  const keep = (list: WorkspaceChange[], change: WorkspaceChange): void => {
    keptBytes += change.path.length + (change.after?.kind === 'link' ? change.after.target.length : 0);
    if (changes.length + hollow.length >= most || keptBytes > mostBytes)
      throw tooMuchChanged(target, keptBytes > mostBytes ? { limitBytes: mostBytes } : { limit: most });
    list.push(change);
  };
  const options = { limits, ...(signal === undefined ? {} : { signal }) };
  const order = new TreeOrder();
  for await (const entry of files.getTree(target, options)) {
    order.take(entry);
    const key = keyOf(entry.path);
    const known = missing.delete(key) ? marks[key] : undefined;
    // What was copied in is looked at whatever it is by now.
    const verdict = known === undefined ? excludes.verdict(entry.path, entry.kind === 'directory') : 'in';
    if (verdict === 'out') continue;
    const before = known === undefined ? undefined : readMark(known);
    const after = await markOf(entry, budget, before);
    if (before === undefined) keep(verdict === 'in' ? changes : hollow, { path: entry.path, after });
    else if (!isSame(before, after)) keep(changes, { path: entry.path, before, after });
  }
  for (const key of missing) {
    const known = marks[key];
    if (known !== undefined) changes.push({ path: pathOfKey(key), before: readMark(known) });
  }
  return [...changes, ...needed(hollow, changes)].sort((a, b) => Buffer.compare(a.path, b.path));
}

/** SECURITY: porter was asked for no more than this, and what it says of a size need not be true. */
class CompareBudget {
  readonly #fileBytes: number;
  #left: number;

  constructor({ fileBytes, totalBytes }: TreeLimits) {
    this.#fileBytes = fileBytes;
    this.#left = totalBytes;
  }

  /** Of one file. */
  get most(): number {
    return Math.min(this.#fileBytes, this.#left);
  }

  take(bytes: number): void {
    this.#left -= bytes;
  }
}

function tooMuchChanged(
  target: string,
  limit: { readonly limit: number } | { readonly limitBytes: number },
): SallyportError {
  const what =
    'limit' in limit
      ? `more than ${limit.limit} paths changed in ${target}`
      : `the paths that changed in ${target} take more than ${limit.limitBytes} bytes`;
  return new SallyportError('workspace_too_large', what, { details: { target, ...limit } });
}

/** Of folders that are only there for what is in them those in which something is. */
function needed(
  folders: readonly WorkspaceChange[],
  changes: readonly WorkspaceChange[],
): readonly WorkspaceChange[] {
  const above = new Set<string>();
  for (const { path, after } of changes) {
    if (after === undefined) continue;
    let folder = path.toString('latin1');
    for (let end = folder.lastIndexOf('/'); end > 0; end = folder.lastIndexOf('/')) {
      folder = folder.slice(0, end);
      if (above.has(folder)) break;
      above.add(folder);
    }
  }
  return folders.filter(({ path }) => above.has(path.toString('latin1')));
}

type Entry = Awaited<ReturnType<ReturnType<Files['getTree']>['next']>>['value'];

async function markOf(entry: Entry, budget: CompareBudget, before: Mark | undefined): Promise<Mark> {
  switch (entry.kind) {
    case 'directory':
      return { kind: 'directory' };
    case 'link':
      return { kind: 'link', target: entry.target };
    case 'file': {
      const { mode, sizeBytes } = entry;
      const sha256 = entry.isUnsent === true ? undefined : await hashOf(entry, budget, before);
      if (sha256 === undefined) return { kind: 'large', mode: mode & 0o777, sizeBytes };
      return { kind: 'file', mode: mode & 0o777, sha256, sizeBytes };
    }
    default:
      return { kind: 'other' };
  }
}

/**
 * Undefined: it has more data than is compared. A baseline of before holes counted has the plain hash of a file with holes: one
 * that has its size still is hashed in that way too, zeros and all.
 */
async function hashOf(
  { content, pieces, sizeBytes }: Entry,
  budget: CompareBudget,
  before: Mark | undefined,
): Promise<string | undefined> {
  const { most } = budget;
  const known = before?.kind === 'file' && before.sizeBytes === sizeBytes ? before.sha256 : undefined;
  const isPlain = known?.startsWith(holesPrefix) === false && sizeBytes <= most;
  const hash = new ContentHash({ plain: isPlain });
  if (content !== undefined) hash.update(content);
  else {
    for await (const piece of isPlain ? withZeros(pieces) : pieces) {
      hash.update(piece);
      if (hash.hashedBytes > most) break;
    }
  }
  budget.take(isPlain ? sizeBytes : Math.min(hash.hashedBytes, most));
  if (hash.hashedBytes > most) return undefined;
  return isPlain && hash.plainDigest() === known ? known : hash.digest();
}

/** A path that is on the host now as it was inside, or is gone there as it was inside. */
export interface BroughtBack {
  readonly path: Buffer;
  /** Absent: it was removed. */
  readonly mark?: Mark;
}

/**
 * The baseline after that. What was brought back is the word of the caller; the content of a file is kept if it is still
 * the same inside, else the file is known by its hash alone.
 */
export async function movedBaseline(
  files: Files,
  target: string,
  {
    marks,
    pack,
    news,
  }: { readonly marks: Marks; readonly pack: BaselineWriter; readonly news: readonly BroughtBack[] },
): Promise<Marks> {
  const moved: Record<string, string> = { ...marks };
  const wanted = new Map<string, Buffer>();
  const entries = Object.keys(marks).length;
  for (const { path, mark } of news) {
    if (mark === undefined) delete moved[keyOf(path)];
    else moved[keyOf(path)] = writeMark(mark);
    if (mark?.kind === 'file' && mark.sizeBytes <= mostKeptFileBytes) wanted.set(keyOf(path), path);
  }
  for await (const { key, content } of contentsOf(files, target, { wanted, entries })) {
    const mark = readMark(moved[key] ?? '');
    const keptAt = placeFor(pack, content.length);
    const isSameContent = mark.kind === 'file' && hashLike(mark.sha256, content) === mark.sha256;
    if (!isSameContent || keptAt === undefined) continue;
    await pack.write(content);
    moved[key] = writeMark({ ...mark, sizeBytes: content.length, keptAt });
  }
  return moved;
}

/** One walk reads everything, an operation one file: what is few in itself or among all is read one by one. */
const mostSingleFiles = (entries: number): number => Math.max(256, entries / 20);

/** The files among these that are there and small enough to be kept, in any order. */
async function* contentsOf(
  files: Files,
  target: string,
  { wanted, entries }: { readonly wanted: ReadonlyMap<string, Buffer>; readonly entries: number },
): AsyncGenerator<{ readonly key: string; readonly content: Buffer }> {
  if (wanted.size <= mostSingleFiles(entries)) {
    for (const [key, path] of wanted) {
      const content = await contentAt(files, Buffer.concat([Buffer.from(`${target}/`), path]));
      if (content !== undefined) yield { key, content };
    }
    return;
  }
  const limits = { fileBytes: mostKeptFileBytes, totalBytes: mostCompared.totalBytes };
  for await (const entry of files.getTree(target, { limits })) {
    const key = keyOf(entry.path);
    if (
      entry.kind !== 'file' ||
      entry.isUnsent === true ||
      !wanted.has(key) ||
      entry.sizeBytes > mostKeptFileBytes
    )
      continue;
    const chunks: Buffer[] = [];
    if (entry.content === undefined) for await (const chunk of entry.body) chunks.push(chunk);
    yield { key, content: entry.content ?? Buffer.concat(chunks) };
  }
}

/** Undefined: it changed since, and is gone, larger, or of another kind. */
async function contentAt(files: Files, path: Buffer): Promise<Buffer | undefined> {
  try {
    return await files.readAll(path, mostKeptFileBytes);
  } catch (error) {
    if (isSallyportError(error) && error.code.startsWith('file_')) return undefined;
    throw error;
  }
}

const shownPaths = 10;
const reportedPaths = 200;

export function requireNoChanges(
  { name }: Pick<SandboxRecord, 'name'>,
  changes: readonly WorkspaceChange[],
): void {
  if (changes.length === 0) return;
  const paths = changes.slice(0, reportedPaths).map(({ path }) => path.toString('utf8'));
  const more = changes.length > shownPaths ? ', …' : '';
  const list = paths.slice(0, shownPaths).join(', ');
  throw new SallyportError(
    'sandbox_changed',
    `sandbox ${name} has ${changes.length} changes that exist nowhere else: ${list}${more}`,
    {
      details: { sandbox: name, count: changes.length, paths },
      advice: `\`sally diff ${name}\` shows them, \`sally apply ${name}\` brings them back; \`--force\` removes it with them.`,
    },
  );
}
