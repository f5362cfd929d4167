/**
 * Writes a tree that comes from a sandbox to a folder of this machine.
 *
 * SECURITY: the tree is hostile, and so may be whoever else writes to that folder (a sandbox with a live workspace). Every
 * step goes from an open directory to a name in it and follows no link; no name is written twice; a link is made only if
 * it stays inside the tree; modes have no set-id bits. Where the system has no /proc/self/fd the steps are checked
 * before, which holds against the tree but not against somebody who swaps folders at the same time.
 */

import { constants, existsSync } from 'node:fs';
import { type FileHandle, mkdir, open, rm, symlink } from 'node:fs/promises';
import { posix } from 'node:path';
import type { TreeEntry } from '../porter/tree-stream.ts';
import { SallyportError } from '../protocol/errors.ts';

export interface SkippedEntry {
  readonly path: string;
  readonly why: string;
}

export interface WrittenTree {
  readonly entries: number;
  readonly skipped: readonly SkippedEntry[];
}

const mostEntries = 2_000_000;
const mostSkippedShown = 1000;
const directoryFlags = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
const fileFlags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

/** `root` is there; what it has of the same names is replaced, folders are kept. */
export async function writeTree(root: string, entries: AsyncIterable<TreeEntry>): Promise<WrittenTree> {
  const folders = await Folders.open(root);
  const seen = new Set<string>();
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
      if (seen.size >= mostEntries) throw refusal(path, `there are more than ${mostEntries} entries`);
      seen.add(path);
      const why = await writeEntry(folders, path, entry);
      if (why === undefined) written++;
      else skip(path, why);
    }
    return { entries: written, skipped };
  } finally {
    await folders.close();
  }
}

/** Why it was left out, if it was. */
async function writeEntry(folders: Folders, path: string, entry: TreeEntry): Promise<string | undefined> {
  const { kind, mode } = entry;
  if (kind === 'other') return 'it is neither file, folder nor link';
  const at = await folders.child(path);
  switch (kind) {
    case 'directory':
      await mkdir(at, { mode: mode | 0o700 }).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== 'EEXIST') throw error;
      });
      // Refuses what is there and is no directory.
      await folders.enter(path);
      return undefined;
    case 'link': {
      const target = entry.target.toString('utf8');
      if (leavesTree(path, target)) return `it leads out of the tree, to ${target}`;
      await rm(at, { force: true });
      await symlink(target, at);
      return undefined;
    }
    case 'file':
      await rm(at, { force: true });
      await writeFile(at, entry);
      return undefined;
  }
}

async function writeFile(at: string, { body, mode }: TreeEntry): Promise<void> {
  const file = await open(at, fileFlags, mode & 0o777);
  try {
    for await (const chunk of body) await file.writeFile(chunk);
    await file.chmod(mode & 0o777);
  } finally {
    await file.close();
  }
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

function refusal(path: string, why: string): SallyportError {
  return new SallyportError('tree_refused', `${JSON.stringify(path)} was not written: ${why}`, {
    details: { path },
  });
}

/** The open folder of the tree at which the writer is, and those above it. */
class Folders {
  readonly #root: string;
  readonly #chain: { readonly path: string; readonly handle: FileHandle }[];
  readonly #byHandle = existsSync('/proc/self/fd');

  private constructor(root: string, handle: FileHandle) {
    this.#root = root;
    this.#chain = [{ path: '', handle }];
  }

  static async open(root: string): Promise<Folders> {
    // The folder itself is the user's word: it may be reached through links.
    return new Folders(root, await open(root, constants.O_RDONLY | constants.O_DIRECTORY));
  }

  /** A path by which the entry can be reached without any link on the way. */
  async child(path: string): Promise<string> {
    const parent = posix.dirname(path);
    await this.enter(parent === '.' ? '' : parent);
    return this.#join(posix.basename(path));
  }

  /** Goes to a folder of the tree, which must be there and must be one. */
  async enter(path: string): Promise<void> {
    while (!isAtOrAbove(this.#current.path, path)) await this.#chain.pop()?.handle.close();
    const rest = path
      .slice(this.#current.path.length)
      .split('/')
      .filter((part) => part !== '');
    for (const part of rest) {
      const here = this.#current.path;
      const next = here === '' ? part : `${here}/${part}`;
      const handle = await open(this.#join(part), directoryFlags).catch((cause: unknown) => {
        throw refusal(
          next,
          `it is no folder here, or a link (${cause instanceof Error ? cause.message : ''})`,
        );
      });
      this.#chain.push({ path: next, handle });
    }
  }

  async close(): Promise<void> {
    for (const { handle } of this.#chain) await handle.close();
  }

  get #current(): { readonly path: string; readonly handle: FileHandle } {
    const last = this.#chain.at(-1);
    if (last === undefined) throw new Error('the folders are closed');
    return last;
  }

  #join(name: string): string {
    const { path, handle } = this.#current;
    return this.#byHandle ? `/proc/self/fd/${handle.fd}/${name}` : posix.join(this.#root, path, name);
  }
}

const isAtOrAbove = (above: string, path: string): boolean =>
  above === '' || path === above || path.startsWith(`${above}/`);
