/**
 * Searches the folder of a built-in tool for a link that leads out of it. A program inside may have filled the folder, so the
 * search has a bound and ends when it is cancelled. Reads names and links alone.
 */

import { readlink } from 'node:fs/promises';
import { linkText } from '../policy/copy-links.ts';
import { refuse } from '../policy/copy-sources.ts';
import { CopyTree, type Listing } from './copy-tree.ts';

/** A cache of uv or npm may have hundreds of thousands, and a million take some seconds. */
const mostSearched = 2_000_000;

export interface LinkSearch {
  /** In the syntax of `.gitignore`. */
  readonly hidden: readonly string[];
  readonly mostEntries?: number;
  readonly signal?: AbortSignal | undefined;
}

/** The first that is found. SECURITY: a folder of more entries is refused, because a link may be among those not looked at. */
export async function escapingLink(
  root: string,
  { hidden, mostEntries = mostSearched, signal }: LinkSearch,
): Promise<string | undefined> {
  const tree = new CopyTree(root, { patterns: hidden, from: [] });
  const rootBytes = Buffer.from(root).toString('latin1');
  const escapes = async (path: Buffer): Promise<boolean> => {
    const target = (await readlink(tree.absolute(path), { encoding: 'buffer' })).toString('latin1');
    // Also one whose text would have to be another: a bind shows it as it is.
    return linkText(rootBytes, path.toString('latin1'), target) !== target;
  };
  let seen = 0;
  const find = async ({ entries, rules }: Listing): Promise<string | undefined> => {
    for (const { path, entry } of entries) {
      signal?.throwIfAborted();
      seen += 1;
      if (seen > mostEntries) throw tooMany(root, mostEntries);
      if (entry.isSymbolicLink() && (await unlessGone(escapes(path)))) return path.toString('utf8');
      const listing = entry.isDirectory() ? await unlessGone(tree.below(path, rules)) : undefined;
      const below = listing === undefined ? undefined : await find(listing);
      if (below !== undefined) return below;
    }
    return undefined;
  };
  const top = await unlessGone(tree.top());
  return top === undefined ? undefined : await find(top);
}

const tooMany = (root: string, mostEntries: number): Error =>
  refuse(
    'builtin_tools',
    `builtin_tools: ${root} has more than ${mostEntries} files and folders, too many to look for links that lead out of it`,
    'Remove what is not needed in it, or leave the tool out.',
  );

/** What went meanwhile or may not be read shows nothing inside either. */
async function unlessGone<T>(look: Promise<T>): Promise<T | undefined> {
  try {
    return await look;
  } catch (error) {
    const code = (error as { readonly code?: unknown }).code;
    const isGone = ['ENOENT', 'EACCES', 'EPERM', 'EINVAL', 'copy_changed', 'copy_unreadable'];
    if (isGone.includes(String(code))) return undefined;
    throw error;
  }
}
