/**
 * Puts the copies of a spec into a sandbox, streamed entry by entry: nothing is staged on the host's disk, and what is held in
 * memory does not grow with the tree. What a copy may not hold is refused before anything is made, and again while it is read.
 */

import { readlink, realpath } from 'node:fs/promises';
import { posix } from 'node:path';
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
import { LinkTargets } from './link-target.ts';
import type { Tell } from './world.ts';

const progressEvery = 1000;

/** Looks at names and links alone. Throws what would keep it from being copied. */
export async function requireCopyable({ source, kind, excludes, isWorkspace }: PlannedCopy): Promise<void> {
  if (kind === 'file') return;
  const tree = new CopyTree(source, excludes);
  const top = await tree.top();
  // In a workspace links stay as they are, and what cannot be copied is left out with an event.
  if (isWorkspace) return;
  await requireAll({ root: source, tree, targets: new LinkTargets(bytes(Buffer.from(source))) }, top);
}

interface JudgedTree {
  readonly root: string;
  readonly tree: CopyTree;
  readonly targets: LinkTargets;
}

async function requireAll(judged: JudgedTree, { entries, rules }: Listing): Promise<void> {
  const { root, tree } = judged;
  for (const { path, entry, onlyBelow } of entries) {
    if (entry.isDirectory()) await requireAll(judged, await tree.below(path, rules));
    else if (entry.isSymbolicLink() && !onlyBelow) await requireLink(judged, path);
    else if (!entry.isFile() && !onlyBelow && isKnown(entry)) throw special(root, path);
  }
}

type Kinds = Record<'isFIFO' | 'isSocket' | 'isBlockDevice' | 'isCharacterDevice', () => boolean>;

/** Some file systems do not say it in a listing. Then it is found out when it is copied. */
const isKnown = (entry: Kinds): boolean =>
  entry.isFIFO() || entry.isSocket() || entry.isBlockDevice() || entry.isCharacterDevice();

/** One that names nothing is kept: it names nothing outside either. One that names what the user may not read is refused. */
async function requireLink({ root, tree, targets }: JudgedTree, path: Buffer): Promise<void> {
  const target = await targetOf(tree, path);
  const text = bytes(await insideLink(root, path, target));
  const reached = posix.resolve(bytes(Buffer.from(root)), posix.dirname(bytes(path)), text);
  if ((await targets.inspect(reached)) === 'unreadable') throw unreadableLink(root, path, target);
}

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

function unreadableLink(root: string, path: Buffer, target: Buffer): SallyportError {
  const shown = { link: path.toString('utf8'), target: target.toString('utf8') };
  return new SallyportError(
    'refused_by_policy',
    `copies: the link ${shown.link} in ${root} leads to ${shown.target}, which cannot be read`,
    {
      details: { field: 'copies', path: shown.link, target: shown.target, rule: 'unreadable-link' },
      advice: 'Make what it leads to readable for you, or leave the link out with `exclude_patterns`.',
    },
  );
}

/** An absolute link may name the tree by another way, through a link above it. */
async function byRealPath(root: string, path: Buffer, target: Buffer): Promise<string | undefined> {
  if (target[0] !== 0x2f) return undefined;
  const real = await realAsFarAsThere(bytes(target));
  return real !== undefined && isWithin(real, root) ? relativeLink(root, bytes(path), real) : undefined;
}

/** With all links followed; what is not there has none. Undefined: it cannot be known. */
async function realAsFarAsThere(path: string): Promise<string | undefined> {
  for (let at = path, rest = ''; ; rest = `/${posix.basename(at)}${rest}`, at = posix.dirname(at)) {
    // The folder that `..` leaves is not there, so which folder is meant is not known.
    if (rest.split('/').includes('..')) return undefined;
    try {
      const real = bytes(await realpath(Buffer.from(at, 'latin1'), { encoding: 'buffer' }));
      return posix.normalize(`${real}${rest}`);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if ((code !== 'ENOENT' && code !== 'ENOTDIR') || at === '/') return undefined;
    }
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
