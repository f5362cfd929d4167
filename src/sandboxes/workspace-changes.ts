/**
 * What is different in a copied workspace from what was put in, and how the baseline moves on when changes were brought
 * back. Everything inside is read and hashed: size and times of a file are whatever a program inside says they are.
 */

import { createHash } from 'node:crypto';
import type { Files } from '../porter/files.ts';
import { isSallyportError, SallyportError } from '../protocol/errors.ts';
import {
  isSame,
  keyOf,
  type Mark,
  mostKeptFileBytes,
  pathOfKey,
  placeFor,
  readMark,
  writeMark,
} from './baseline.ts';
import type { BaselineWriter } from './ports.ts';
import type { Manifest, SandboxRecord } from './records.ts';

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
  manifest: Manifest,
  signal?: AbortSignal,
): Promise<readonly WorkspaceChange[]> {
  const missing = new Set(Object.keys(manifest));
  const changes: WorkspaceChange[] = [];
  for await (const entry of files.getTree(target, signal === undefined ? {} : { signal })) {
    const key = keyOf(entry.path);
    const after = await markOf(entry);
    const known = missing.delete(key) ? manifest[key] : undefined;
    const before = known === undefined ? undefined : readMark(known);
    if (before === undefined) changes.push({ path: entry.path, after });
    else if (!isSame(before, after)) changes.push({ path: entry.path, before, after });
  }
  for (const key of missing) {
    const known = manifest[key];
    if (known !== undefined) changes.push({ path: pathOfKey(key), before: readMark(known) });
  }
  return changes.sort((a, b) => Buffer.compare(a.path, b.path));
}

type Entry = Awaited<ReturnType<ReturnType<Files['getTree']>['next']>>['value'];

async function markOf(entry: Entry): Promise<Mark> {
  switch (entry.kind) {
    case 'directory':
      return { kind: 'directory' };
    case 'link':
      return { kind: 'link', target: entry.target };
    case 'file': {
      const hash = createHash('sha256');
      for await (const chunk of entry.body) hash.update(chunk);
      const { mode, sizeBytes } = entry;
      return { kind: 'file', mode: mode & 0o777, sha256: hash.digest('hex'), sizeBytes };
    }
    default:
      return { kind: 'other' };
  }
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
    manifest,
    pack,
    news,
  }: { readonly manifest: Manifest; readonly pack: BaselineWriter; readonly news: readonly BroughtBack[] },
): Promise<Manifest> {
  const moved: Record<string, string> = { ...manifest };
  for (const { path, mark } of news) {
    if (mark === undefined) delete moved[keyOf(path)];
    else
      moved[keyOf(path)] = writeMark(
        await keepContent(files, Buffer.concat([Buffer.from(`${target}/`), path]), mark, pack),
      );
  }
  return moved;
}

async function keepContent(files: Files, path: Buffer, mark: Mark, pack: BaselineWriter): Promise<Mark> {
  if (mark.kind !== 'file') return mark;
  const keptAt = placeFor(pack, mark.sizeBytes);
  if (keptAt === undefined) return mark;
  const content = await files.readAll(path, mostKeptFileBytes).catch((error: unknown) => {
    // It changed since: gone, or of another kind.
    if (isSallyportError(error) && error.code.startsWith('file_')) return undefined;
    throw error;
  });
  if (content === undefined || createHash('sha256').update(content).digest('hex') !== mark.sha256)
    return mark;
  await pack.write(content);
  return { ...mark, sizeBytes: content.length, keptAt };
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
