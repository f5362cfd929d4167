/** Which changed paths of a clone are in commits that are here by now. Asked of our own objects, not of the sandbox. */

import { contentHash } from '../../lib/content-hash.ts';
import { type GitPlace, mustGit, readBlobs, zeroSeparated } from './git-process.ts';

export interface ChangedPath {
  /** Relative to the root. */
  readonly path: Buffer;
  /** As it is inside; absent: it is gone. */
  readonly after?:
    | {
        readonly kind: 'file';
        readonly sha256: string;
        readonly sizeBytes: number;
        readonly isProgram: boolean;
      }
    | { readonly kind: 'link'; readonly target: Buffer }
    | { readonly kind: 'other' };
}

/** Files that are larger are not compared, and so count as not committed. */
const mostBytesAtOnce = 32 * 2 ** 20;

export async function isCommittedIn(
  git: GitPlace,
  commits: readonly string[],
  changes: readonly ChangedPath[],
): Promise<ReadonlySet<ChangedPath>> {
  const found = new Set<ChangedPath>();
  for (const commit of new Set(commits)) {
    const left = changes.filter((change) => !found.has(change));
    for (const change of await committedIn(git, commit, left)) found.add(change);
  }
  return found;
}

interface Entry {
  readonly mode: string;
  readonly object: string;
  readonly sizeBytes: number;
}

async function committedIn(
  git: GitPlace,
  commit: string,
  changes: readonly ChangedPath[],
): Promise<readonly ChangedPath[]> {
  const tree = new Map<string, Entry>();
  for (const line of zeroSeparated(
    await mustGit(git, ['ls-tree', '-r', '-l', '-z', '--full-tree', commit]),
  )) {
    const tab = line.indexOf('\t');
    const [mode = '', , object = '', size = ''] = line.slice(0, tab).split(/ +/);
    tree.set(line.slice(tab + 1), { mode, object, sizeBytes: Number(size) });
  }
  const found: ChangedPath[] = [];
  const compared: { readonly change: ChangedPath; readonly entry: Entry }[] = [];
  for (const change of changes) {
    const entry = tree.get(change.path.toString('latin1'));
    if (change.after === undefined) {
      if (entry === undefined) found.push(change);
    } else if (entry !== undefined && couldBe(change.after, entry)) compared.push({ change, entry });
  }
  for (const some of inPortions(compared)) {
    const contents = await readBlobs(
      git,
      some.map(({ entry }) => entry.object),
    );
    for (const [index, { change }] of some.entries()) {
      if (isContent(change.after, contents[index] ?? Buffer.alloc(0))) found.push(change);
    }
  }
  return found;
}

function couldBe(after: NonNullable<ChangedPath['after']>, { mode, sizeBytes }: Entry): boolean {
  if (after.kind === 'link') return mode === '120000';
  if (after.kind !== 'file' || sizeBytes > mostBytesAtOnce) return false;
  return mode === (after.isProgram ? '100755' : '100644') && sizeBytes === after.sizeBytes;
}

function isContent(after: ChangedPath['after'], content: Buffer): boolean {
  if (after?.kind === 'link') return after.target.equals(content);
  if (after?.kind !== 'file') return false;
  return contentHash(content) === after.sha256;
}

function* inPortions<T extends { readonly entry: Entry }>(all: readonly T[]): Generator<readonly T[]> {
  let some: T[] = [];
  let bytes = 0;
  for (const one of all) {
    if (bytes + one.entry.sizeBytes > mostBytesAtOnce && some.length > 0) {
      yield some;
      some = [];
      bytes = 0;
    }
    some.push(one);
    bytes += one.entry.sizeBytes;
  }
  if (some.length > 0) yield some;
}
