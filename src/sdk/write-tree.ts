/**
 * Writes a tree that comes from a sandbox to a folder of this machine.
 *
 * SECURITY: the tree is hostile, and so may be whoever else writes to that folder (a sandbox with a live workspace). Every
 * step goes from an open directory to a name in it and follows no link (`open-folder.ts`); no name is written twice; what
 * stands at a name is unlinked and never written into; a folder is never removed; a link is made only if it stays inside
 * the tree; modes have no set-id bits.
 *
 * Small files are written without a detour over the thread pool: that would take ten times as long as the call itself.
 */

import {
  closeSync,
  constants,
  fchmodSync,
  ftruncateSync,
  futimesSync,
  lutimesSync,
  mkdirSync,
  openSync,
  symlinkSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import type { Piece } from '../lib/content-hash.ts';
import { OpenFolder } from '../lib/open-folder.ts';
import { SparseWriter } from '../lib/sparse-writer.ts';
import { mostTreeEntries } from '../porter/tree-records.ts';
import type { TreeEntry } from '../porter/tree-stream.ts';
import { isSallyportError, SallyportError } from '../protocol/errors.ts';

export interface SkippedEntry {
  readonly path: string;
  readonly why: string;
}

export interface WrittenTree {
  readonly entries: number;
  readonly skipped: readonly SkippedEntry[];
}

const mostSkippedShown = 1000;
/** All of them are remembered, and each may have 4 KB. */
const defaultPathBytes = 512 * 2 ** 20;
const mostReplacements = 100;
const smallBytes = 256 * 1024;
const fileFlags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

/** `root` is there; what it has of the same names is replaced, folders are kept. */
export async function writeTree(
  root: string,
  entries: AsyncIterable<TreeEntry>,
  { mostPathBytes = defaultPathBytes }: { readonly mostPathBytes?: number } = {},
): Promise<WrittenTree> {
  const folders = new Folders(root);
  const seen = new Set<string>();
  let pathBytes = 0;
  const skipped: SkippedEntry[] = [];
  let written = 0;
  const skip = (path: string, why: string): void => {
    if (skipped.length < mostSkippedShown) skipped.push({ path, why });
  };
  try {
    for await (const entry of entries) {
      const path = entry.path.toString('utf8');
      if (!Buffer.from(path).equals(entry.path)) {
        skip(path, 'its name is no UTF-8');
        continue;
      }
      if (seen.has(path)) throw refusal(path, 'it comes twice');
      if (seen.size >= mostTreeEntries) throw refusal(path, `there are more than ${mostTreeEntries} entries`);
      pathBytes += entry.path.length;
      if (pathBytes > mostPathBytes) throw refusal(path, `all paths take more than ${mostPathBytes} bytes`);
      seen.add(path);
      const why = await writeEntry(folders, path, entry);
      if (why === undefined) written++;
      else skip(path, why);
    }
    return { entries: written, skipped };
  } finally {
    folders.close();
  }
}

/** Why it was left out, if it was. */
async function writeEntry(folders: Folders, path: string, entry: TreeEntry): Promise<string | undefined> {
  if (entry.kind === 'other') return 'it is neither file, folder nor link';
  if (entry.isUnsent === true) return 'its content was not sent';
  try {
    switch (entry.kind) {
      case 'directory':
        folders.make(path, entry);
        return undefined;
      case 'link': {
        const target = entry.target.toString('utf8');
        if (leavesTree(path, target)) return `it leads out of the tree, to ${target}`;
        writeLink(folders.child(path), entry);
        return undefined;
      }
      case 'file':
        await writeFile(folders.child(path), entry);
        return undefined;
    }
  } catch (error) {
    throw asRefusal(path, error);
  }
}

function writeLink(at: Buffer, { target, mtimeNs }: TreeEntry): void {
  inPlaceOf(at, () => symlinkSync(target, at));
  const time = secondsOf(mtimeNs);
  if (time !== undefined) lutimesSync(at, time, time);
}

async function writeFile(at: Buffer, { body, pieces, mode, mtimeNs, sizeBytes }: TreeEntry): Promise<void> {
  const fd = inPlaceOf(at, () => openSync(at, fileFlags, mode & 0o777));
  try {
    if (sizeBytes <= smallBytes) {
      for await (const chunk of body) {
        for (let done = 0; done < chunk.length; ) done += writeSync(fd, chunk, done);
      }
    } else await writeLarge(fd, pieces, sizeBytes);
    fchmodSync(fd, mode & 0o777);
    const time = secondsOf(mtimeNs);
    if (time !== undefined) futimesSync(fd, time, time);
  } finally {
    closeSync(fd);
  }
}

async function writeLarge(fd: number, pieces: AsyncIterable<Piece>, sizeBytes: number): Promise<void> {
  // A size that no file has here is refused before anything of it is made.
  ftruncateSync(fd, sizeBytes);
  const writer = new SparseWriter(fd);
  for await (const piece of pieces) await writer.write(piece);
}

/** Makes what is not there; whatever has the name is taken away, unless it is a folder. */
function inPlaceOf<T>(at: Buffer, make: () => T): T {
  // Whoever puts something there again and again must not hold this program for ever.
  for (let left = mostReplacements; ; left--) {
    try {
      return make();
    } catch (error) {
      if (left === 0 || (error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
      unlinkSync(at);
    }
  }
}

/** As when files are read here: what is before 1970, which comes as a huge number, is not set. */
function secondsOf(ns: bigint): number | undefined {
  const signed = BigInt.asIntN(64, ns);
  return signed > 0n ? Number(signed / 1000n) / 1e6 : undefined;
}

/**
 * Only leading `..` are taken: `a/b/..` says where it leads only to somebody who knows whether `b` is a link. What is left
 * goes down, at most through other links of this tree, none of which leaves it either.
 */
export function leavesTree(path: string, target: string): boolean {
  if (target.startsWith('/')) return true;
  const parts = target.split('/').filter((part) => part !== '' && part !== '.');
  const up = parts.findIndex((part) => part !== '..');
  const leading = up < 0 ? parts.length : up;
  return leading > path.split('/').length - 1 || parts.slice(leading).includes('..');
}

function refusal(path: string, why: string, cause?: unknown): SallyportError {
  return new SallyportError('tree_refused', `${JSON.stringify(path)} was not written: ${why}`, {
    details: { path },
    cause,
  });
}

const inTheWay: ReadonlySet<string | undefined> = new Set(['EISDIR', 'ENOTEMPTY']);

function asRefusal(path: string, error: unknown): unknown {
  if (isSallyportError(error)) return error;
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === undefined) return error;
  if (code === 'ENOSPC' || code === 'EDQUOT') {
    return new SallyportError('disk_full', `${JSON.stringify(path)} was not written: ${message}`, {
      details: { path },
      cause: error,
    });
  }
  // Without the path of the system's message: it is one of descriptors.
  const why = inTheWay.has(code) ? 'a folder of its name is in the way' : message.replace(/, .*$/s, '');
  return refusal(path, why, error);
}

interface Place {
  readonly path: string;
  readonly folder: OpenFolder;
  /** Of one that was made here: set when nothing more is put into it. */
  readonly facts?: Pick<TreeEntry, 'mode' | 'mtimeNs'>;
}

/** The open folder of the tree at which the writer is, and those above it. */
class Folders {
  readonly #root: OpenFolder;
  readonly #chain: Place[] = [];

  constructor(root: string) {
    // The folder itself is the user's word: it may be reached through links.
    this.#root = OpenFolder.at(root);
  }

  /** A path by which the entry can be reached without any link on the way. */
  child(path: string): Buffer {
    const slash = path.lastIndexOf('/');
    this.#enter(slash < 0 ? '' : path.slice(0, slash));
    return this.#current.folder.child(Buffer.from(path.slice(slash + 1)));
  }

  /** One that is there keeps its mode and time; anything else that is there and is no folder is refused. */
  make(path: string, facts: Pick<TreeEntry, 'mode' | 'mtimeNs'>): void {
    const at = this.child(path);
    try {
      mkdirSync(at, { mode: 0o700 });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
      this.#enter(path);
      return;
    }
    this.#step(path, facts);
  }

  close(): void {
    while (this.#chain.length > 0) this.#leave();
    this.#root.close();
  }

  #enter(path: string): void {
    while (!isAtOrAbove(this.#current.path, path)) this.#leave();
    const here = this.#current.path;
    const rest = path.slice(here === '' ? 0 : here.length + 1);
    if (rest === '') return;
    let next = here;
    for (const part of rest.split('/')) {
      next = next === '' ? part : `${next}/${part}`;
      this.#step(next);
    }
  }

  #step(path: string, facts?: Place['facts']): void {
    try {
      const folder = this.#current.folder.enter(Buffer.from(path.slice(path.lastIndexOf('/') + 1)));
      this.#chain.push({ path, folder, ...(facts === undefined ? {} : { facts }) });
    } catch (cause) {
      throw refusal(
        path,
        `it is no folder here, or a link (${(cause as NodeJS.ErrnoException).code})`,
        cause,
      );
    }
  }

  #leave(): void {
    const place = this.#chain.pop();
    if (place === undefined) return;
    const { folder, facts } = place;
    try {
      if (facts === undefined) return;
      const time = secondsOf(facts.mtimeNs);
      if (time !== undefined) futimesSync(folder.fd, time, time);
      fchmodSync(folder.fd, facts.mode & 0o777);
    } finally {
      folder.close();
    }
  }

  get #current(): Place {
    return this.#chain.at(-1) ?? { path: '', folder: this.#root };
  }
}

const isAtOrAbove = (above: string, path: string): boolean =>
  above === '' || path === above || path.startsWith(`${above}/`);
