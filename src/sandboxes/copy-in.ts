/**
 * Puts the copies of a spec into a sandbox, streamed entry by entry: nothing is staged on the host's disk, and what is held in
 * memory does not grow with the tree. What a copy may not hold is refused before anything is made, and again while it is read.
 */

import { readlink, realpath } from 'node:fs/promises';
import type { HostEntry, LoadedEntry } from '../lib/host-tree.ts';
import { linkText, relativeLink } from '../policy/copy-links.ts';
import type { PlannedCopy } from '../policy/copy-sources.ts';
import { isWithin } from '../policy/paths.ts';
import type { Files } from '../porter/files.ts';
import type { TreeSource } from '../porter/tree-stream.ts';
import { SallyportError } from '../protocol/errors.ts';
import {
  type CopyEntry,
  CopyTree,
  copyFailure,
  type Listing,
  readable,
  withSingleFile,
} from './copy-tree.ts';
import type { Tell } from './world.ts';

const progressEvery = 1000;

/** Looks at names and links alone. Throws what would keep it from being copied. */
export async function requireCopyable({ source, kind, excludes, isWorkspace }: PlannedCopy): Promise<void> {
  if (kind === 'file') return;
  const tree = new CopyTree(source, excludes);
  const top = await tree.top();
  // In a workspace links stay as they are, and what cannot be copied is left out with an event.
  if (!isWorkspace) await requireAll(source, tree, top);
}

async function requireAll(root: string, tree: CopyTree, { entries, rules }: Listing): Promise<void> {
  for (const { path, entry, onlyBelow } of entries) {
    if (entry.isDirectory()) await requireAll(root, tree, await tree.below(path, rules));
    else if (entry.isSymbolicLink() && !onlyBelow) await insideLink(root, path, await targetOf(tree, path));
    else if (!entry.isFile() && !onlyBelow && isKnown(entry)) throw special(root, path);
  }
}

type Kinds = Record<'isFIFO' | 'isSocket' | 'isBlockDevice' | 'isCharacterDevice', () => boolean>;

/** Some file systems do not say it in a listing. Then it is found out when it is copied. */
const isKnown = (entry: Kinds): boolean =>
  entry.isFIFO() || entry.isSocket() || entry.isBlockDevice() || entry.isCharacterDevice();

async function targetOf(tree: CopyTree, path: Buffer): Promise<Buffer> {
  try {
    return await readlink(tree.absolute(path), { encoding: 'buffer' });
  } catch (cause) {
    throw copyFailure(path, cause);
  }
}

export async function putCopy(
  files: Files,
  copy: PlannedCopy,
  options: { readonly tell: Tell; readonly signal: AbortSignal },
): Promise<void> {
  const { source, target, kind } = copy;
  const { signal } = options;
  if (kind === 'file') {
    await withSingleFile(source, async (entry) => {
      // The empty file that the image has there belongs to the sandbox's user, whoever its folder belongs to.
      await files.write(target, readable(entry), { how: 'truncate', mode: entry.mode, signal });
    });
    return;
  }
  await files.putTree(target, counted(treeOf(copy), copy, options.tell), { signal });
}

async function* treeOf({ source, excludes }: PlannedCopy): AsyncGenerator<TreeSource> {
  const firstNames = new Map<string, Buffer>();
  for await (const entry of new CopyTree(source, excludes).entries()) {
    const first = entry.kind === 'file' ? firstNames.get(entry.sameAs ?? '') : undefined;
    if (first !== undefined) {
      yield { kind: 'hardlink', path: entry.path, target: first };
      continue;
    }
    if (entry.kind === 'file' && entry.sameAs !== undefined) firstNames.set(entry.sameAs, entry.path);
    yield await treeSource(source, entry);
  }
}

/**
 * The folder of a tool as its daemon-owned copy has it (A6). SECURITY: a link that leads out is left out and never followed:
 * what runs in a sandbox can plant one in a folder that it may write to, and the next sandbox would be given what it names.
 */
export async function* shadowEntries(
  root: string,
  excludes: readonly string[],
  leftOut: (link: string) => void,
): AsyncGenerator<LoadedEntry> {
  for await (const entry of new CopyTree(root, { patterns: excludes, from: [] }).entries()) {
    if (entry.kind === 'other') continue;
    if (entry.kind !== 'link') {
      yield entry.kind === 'file' ? { ...entry, chunks: () => readable(entry) } : entry;
      continue;
    }
    const text = linkText(bytes(Buffer.from(root)), bytes(entry.path), bytes(entry.target));
    if (text === undefined) leftOut(entry.path.toString('utf8'));
    else yield { ...entry, target: Buffer.from(text, 'latin1') };
  }
}

async function treeSource(root: string, entry: CopyEntry): Promise<TreeSource> {
  const { path, mode, mtimeNs } = entry;
  switch (entry.kind) {
    case 'file':
      return { kind: 'file', path, mode, mtimeNs, body: entry.content ?? streamed(entry) };
    case 'directory':
      return { kind: 'directory', path, mode: mode | 0o700, mtimeNs };
    case 'link':
      return { kind: 'link', path, target: await insideLink(root, path, entry.target), mtimeNs };
    case 'other':
      throw special(root, path);
  }
}

const streamed = (entry: Extract<HostEntry, { kind: 'file' }>) => ({
  sizeBytes: entry.sizeBytes,
  chunks: readable(entry),
});

async function* counted(
  entries: AsyncIterable<TreeSource>,
  { source }: PlannedCopy,
  tell: Tell,
): AsyncGenerator<TreeSource> {
  let count = 0;
  for await (const entry of entries) {
    yield entry;
    if (++count % progressEvery !== 0) continue;
    tell({ step: 'copy', message: `copying ${source}: ${count} entries`, current: count });
  }
}

const bytes = (path: Buffer): string => path.toString('latin1');

/** The text that the link gets inside. One that leads out of the tree is refused. */
async function insideLink(root: string, path: Buffer, target: Buffer): Promise<Buffer> {
  const tree = bytes(Buffer.from(root));
  const text = linkText(tree, bytes(path), bytes(target)) ?? (await byRealPath(tree, path, target));
  if (text !== undefined) return Buffer.from(text, 'latin1');
  const shown = { link: path.toString('utf8'), target: target.toString('utf8') };
  throw new SallyportError(
    'refused_by_policy',
    `copies: the link ${shown.link} in ${root} leads out of it, to ${shown.target}`,
    {
      details: { field: 'copies', path: shown.link, target: shown.target, rule: 'external-link' },
      advice: 'Leave it out with `exclude_patterns`, or copy what it leads to as an entry of its own.',
    },
  );
}

/** An absolute link may name the tree by another way, through a link above it. */
async function byRealPath(root: string, path: Buffer, target: Buffer): Promise<string | undefined> {
  if (target[0] !== 0x2f) return undefined;
  try {
    const real = bytes(await realpath(target, { encoding: 'buffer' }));
    return isWithin(real, root) ? relativeLink(root, bytes(path), real) : undefined;
  } catch {
    return undefined;
  }
}

function special(root: string, path: Buffer): SallyportError {
  const shown = path.toString('utf8');
  return new SallyportError(
    'refused_by_policy',
    `copies: ${shown} in ${root} is neither a file, a folder nor a link`,
    {
      details: { field: 'copies', path: shown, rule: 'special-file' },
      advice: 'Leave it out with `exclude_patterns`: devices, sockets and pipes are never copied.',
    },
  );
}
