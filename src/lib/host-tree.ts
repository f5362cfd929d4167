/** One entry of this machine's file system, as a copy takes it. Links are told and never followed. Names are bytes. */

import { type BigIntStats, closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { lstat, open, readlink } from 'node:fs/promises';
import { holeBytesOf } from './hole-bound.ts';

/** What was read is neither the old file nor the new one. */
export class FileChangedError extends Error {
  constructor(path: Buffer) {
    super(`${path.toString('utf8')} changed while it was read`);
    this.name = 'FileChangedError';
  }
}

interface Named {
  /** Relative to the tree's root. */
  readonly path: Buffer;
  readonly mode: number;
  readonly mtimeNs: bigint;
}

export type HostEntry =
  | (Named & {
      readonly kind: 'file';
      readonly sizeBytes: number;
      /** The part of it that has no block on the disk. */
      readonly holeBytes: number;
      /** The same for all names of one file; absent where it has only this one. */
      readonly sameAs?: string;
      /** Exactly that many bytes, or a `FileChangedError`. */
      readonly chunks: () => AsyncIterable<Buffer>;
    })
  | (Named & { readonly kind: 'directory' })
  | (Named & { readonly kind: 'link'; readonly target: Buffer })
  /** A device, a socket, a pipe. */
  | (Named & { readonly kind: 'other' });

/** With all of a small file, where it was read in one go. */
export type LoadedEntry = HostEntry & { readonly content?: Buffer };

const slash = Buffer.from('/');
export const joinPath = (parent: Buffer, name: Buffer): Buffer =>
  parent.length === 0 ? name : Buffer.concat([parent, slash, name]);

/** A set-user-id bit means nothing inside, and no time is before 1970 there. */
const namedOf = (path: Buffer, { mode, mtimeNs }: BigIntStats): Named => ({
  path,
  mode: Number(mode & 0o777n),
  mtimeNs: mtimeNs > 0n ? mtimeNs : 0n,
});

/** What is at `absolute`; `path` is how it is called in the tree. */
export async function hostEntry(absolute: Buffer, path: Buffer): Promise<HostEntry> {
  const facts = await lstat(absolute, { bigint: true });
  const named = namedOf(path, facts);
  if (facts.isDirectory()) return { ...named, kind: 'directory' };
  if (facts.isSymbolicLink()) {
    return { ...named, kind: 'link', target: await readlink(absolute, { encoding: 'buffer' }) };
  }
  if (!facts.isFile()) return { ...named, kind: 'other' };
  return fileEntry(named, facts, () => readFile(absolute, facts));
}

type FileEntry = Extract<HostEntry, { kind: 'file' }>;

function fileEntry(named: Named, facts: BigIntStats, chunks: FileEntry['chunks']): FileEntry {
  return {
    ...named,
    kind: 'file',
    sizeBytes: Number(facts.size),
    holeBytes: holeBytesOf(facts),
    chunks,
    ...(facts.nlink > 1n ? { sameAs: `${facts.dev}:${facts.ino}` } : {}),
  };
}

/**
 * A small file with its content, read in blocking calls: for a tree of many files they cost a seventh of the others. For disks of
 * this machine only, where they cannot hang. Undefined: it is none, larger than that, or on another file system than `device`.
 */
export function smallFileNow(
  absolute: Buffer,
  path: Buffer,
  { mostBytes, device }: { readonly mostBytes: number; readonly device: bigint },
): (FileEntry & { readonly content: Buffer }) | undefined {
  const fd = openSync(absolute, readFlags);
  try {
    const facts = fstatSync(fd, { bigint: true });
    if (!facts.isFile() || facts.size > mostBytes || facts.dev !== device) return undefined;
    const content = Buffer.allocUnsafe(Number(facts.size));
    for (let offset = 0; offset < content.length; ) {
      const bytesRead = readSync(fd, content, offset, content.length - offset, offset);
      if (bytesRead === 0) throw new FileChangedError(absolute);
      offset += bytesRead;
    }
    if (!isSame(fstatSync(fd, { bigint: true }), facts)) throw new FileChangedError(absolute);
    return { ...fileEntry(namedOf(path, facts), facts, () => once(content)), content };
  } finally {
    closeSync(fd);
  }
}

async function* once(content: Buffer): AsyncGenerator<Buffer> {
  if (content.length > 0) yield content;
}

// What was a file a moment ago may be a link or a pipe by now.
const readFlags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

const isSame = (now: BigIntStats, expected: BigIntStats): boolean =>
  (['dev', 'ino', 'size', 'mtimeNs', 'ctimeNs'] as const).every((field) => now[field] === expected[field]);

const chunkBytes = 64 * 1024;

async function* readFile(path: Buffer, expected: BigIntStats): AsyncGenerator<Buffer> {
  const sizeBytes = Number(expected.size);
  const handle = await open(path, readFlags);
  const requireSame = async (): Promise<void> => {
    if (!isSame(await handle.stat({ bigint: true }), expected)) throw new FileChangedError(path);
  };
  try {
    await requireSame();
    for (let offset = 0; offset < sizeBytes; ) {
      const chunk = Buffer.allocUnsafe(Math.min(chunkBytes, sizeBytes - offset));
      const { bytesRead } = await handle.read(chunk, 0, chunk.length, offset);
      if (bytesRead === 0) throw new FileChangedError(path);
      offset += bytesRead;
      // Before the last piece is handed on: whoever counts bytes has the file as whole with it.
      if (offset === sizeBytes) await requireSame();
      yield chunk.subarray(0, bytesRead);
    }
  } finally {
    await handle.close();
  }
}
