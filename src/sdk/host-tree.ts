/**
 * A folder of this machine as the entries of a tree, each directory before what is in it and in the order of the names'
 * bytes. Links stay links; what is neither file, folder nor link is left out.
 *
 * SECURITY: somebody may write to the folder at the same time, a sandbox with a live workspace for one. Every step goes
 * from an open directory to a name in it and follows no link, so that nothing outside of the folder is ever read. Where
 * the system has no /proc/self/fd this holds against links that are there, but not against folders that are swapped.
 *
 * Small files are read without a detour over the thread pool: that would take ten times as long as the call itself.
 */

import {
  type BigIntStats,
  closeSync,
  constants,
  type Dirent,
  fstatSync,
  lstatSync,
  openSync,
  read,
  readdirSync,
  readlinkSync,
  readSync,
  type Stats,
} from 'node:fs';
import { promisify } from 'node:util';
import { HoleBound, holeBytesOf, TooManyHolesError } from '../lib/hole-bound.ts';
import { OpenFolder } from '../lib/open-folder.ts';
import type { TreeSource } from '../porter/tree-stream.ts';
import { isSallyportError, SallyportError } from '../protocol/errors.ts';

const readAsync = promisify(read);
const smallBytes = 256 * 1024;
const chunkBytes = 64 * 1024;
const fileFlags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

export function* readHostTree(root: string): Generator<TreeSource> {
  // The folder itself is the user's word: it may be reached through links.
  const folder = OpenFolder.at(root);
  try {
    yield* below(folder, Buffer.alloc(0), new HoleBound());
  } finally {
    folder.close();
  }
}

function* below(folder: OpenFolder, relative: Buffer, holes: HoleBound): Generator<TreeSource> {
  const entries = readdirSync(folder.path, {
    encoding: 'buffer',
    withFileTypes: true,
  }) as unknown as Dirent<Buffer>[];
  entries.sort((a, b) => Buffer.compare(a.name, b.name));
  for (const entry of entries) {
    const path = relative.length === 0 ? entry.name : Buffer.concat([relative, slash, entry.name]);
    if (entry.isFile()) yield* fileAt(folder.child(entry.name), path, holes);
    else if (entry.isSymbolicLink()) yield named(path, () => linkAt(folder.child(entry.name), path));
    else if (entry.isDirectory()) yield* directoryAt(folder, { name: entry.name, path, holes });
  }
}

const slash = Buffer.from('/');

function* directoryAt(
  parent: OpenFolder,
  { name, path, holes }: { readonly name: Buffer; readonly path: Buffer; readonly holes: HoleBound },
): Generator<TreeSource> {
  const folder = named(path, () => parent.enter(name));
  try {
    const { mode, mtimeNs } = fstatSync(folder.fd, { bigint: true });
    yield { kind: 'directory', path, mode: permissions(mode), mtimeNs: known(mtimeNs) };
    yield* below(folder, path, holes);
  } finally {
    folder.close();
  }
}

function linkAt(at: Buffer, path: Buffer): TreeSource {
  const { mtimeNs } = lstatSync(at, { bigint: true });
  return { kind: 'link', path, target: readlinkSync(at, { encoding: 'buffer' }), mtimeNs: known(mtimeNs) };
}

function* fileAt(at: Buffer, path: Buffer, holes: HoleBound): Generator<TreeSource> {
  // What was a file a moment ago may be a link or a pipe by now.
  const fd = named(path, () => openSync(at, fileFlags));
  try {
    const facts = fstatSync(fd, { bigint: true });
    if (!facts.isFile()) throw changed(path);
    requireFewHoles(path.toString('utf8'), facts, holes);
    const sizeBytes = Number(facts.size);
    yield {
      kind: 'file',
      path,
      mode: permissions(facts.mode),
      mtimeNs: known(facts.mtimeNs),
      body:
        sizeBytes <= smallBytes
          ? contentOf(fd, sizeBytes, path)
          : { sizeBytes, chunks: chunksOf(fd, sizeBytes, path) },
    };
  } finally {
    closeSync(fd);
  }
}

/** Before any of it is read. */
export function requireFewHoles(
  path: string,
  facts: Pick<BigIntStats, 'size' | 'blocks'> | Pick<Stats, 'size' | 'blocks'>,
  holes: HoleBound = new HoleBound(),
): void {
  try {
    holes.add(path, holeBytesOf(facts));
  } catch (cause) {
    if (!(cause instanceof TooManyHolesError)) throw cause;
    throw new SallyportError('copy_too_large', cause.message, {
      details: { path },
      advice: 'Copy what is beside it, without this file.',
      cause,
    });
  }
}

/** Exactly as many bytes as were told, or an error: a file that shrinks meanwhile must not pass as whole. */
function contentOf(fd: number, sizeBytes: number, path: Buffer): Buffer {
  const content = Buffer.allocUnsafe(sizeBytes);
  for (let at = 0; at < sizeBytes; ) {
    const got = readSync(fd, content, at, sizeBytes - at, at);
    if (got === 0) throw changed(path);
    at += got;
  }
  return content;
}

async function* chunksOf(fd: number, sizeBytes: number, path: Buffer): AsyncGenerator<Buffer> {
  for (let at = 0; at < sizeBytes; ) {
    const chunk = Buffer.allocUnsafe(Math.min(chunkBytes, sizeBytes - at));
    const { bytesRead } = await readAsync(fd, chunk, 0, chunk.length, at);
    if (bytesRead === 0) throw changed(path);
    at += bytesRead;
    yield chunk.subarray(0, bytesRead);
  }
}

const permissions = (mode: bigint): number => Number(mode & 0o777n);
const known = (mtimeNs: bigint): bigint => (mtimeNs > 0n ? mtimeNs : 0n);

const swapped: ReadonlySet<string | undefined> = new Set(['ENOENT', 'ELOOP', 'ENOTDIR', 'EINVAL', 'ENXIO']);

function named<T>(path: Buffer, act: () => T): T {
  try {
    return act();
  } catch (cause) {
    if (isSallyportError(cause)) throw cause;
    if (swapped.has((cause as NodeJS.ErrnoException).code)) throw changed(path, cause);
    const shown = path.toString('utf8');
    throw new SallyportError('usage', `${shown} cannot be read: ${(cause as Error).message}`, {
      details: { path: shown },
      advice: 'Check its permissions.',
      cause,
    });
  }
}

function changed(path: Buffer, cause?: unknown): SallyportError {
  const shown = path.toString('utf8');
  return new SallyportError('file_conflict', `${shown} changed while it was read`, {
    details: { path: shown },
    advice: 'Copy again when nothing writes to it.',
    cause,
  });
}
