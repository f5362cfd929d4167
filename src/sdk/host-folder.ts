/**
 * A folder of this machine to which changes from a sandbox are brought, by relative paths that are bytes.
 *
 * SECURITY: the paths are hostile, and somebody else may write to the folder at the same time. Every step goes from an open
 * directory to a name in it and follows no link. Where the system has no /proc/self/fd the steps are checked before, which
 * holds against the paths but not against somebody who swaps folders at the same time.
 */

import { createHash } from 'node:crypto';
import { type BigIntStats, constants, existsSync } from 'node:fs';
import { type FileHandle, lstat, mkdir, open, readdir, readlink } from 'node:fs/promises';
import { SallyportError } from '../protocol/errors.ts';

const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK } = constants;
const slash = Buffer.from('/');

export type HostState =
  | { readonly kind: 'absent' }
  | {
      readonly kind: 'file';
      readonly mode: number;
      readonly sha256: string;
      readonly uid: number;
      readonly gid: number;
      readonly stamp: string;
    }
  | { readonly kind: 'symlink'; readonly linkTarget: Buffer; readonly stamp: string }
  | { readonly kind: 'directory' }
  | { readonly kind: 'other' }
  /** What is above it is a link, or no folder. */
  | { readonly kind: 'blocked'; readonly at: Buffer };

/** An open folder, and how to reach a name in it. */
export interface HostPlace {
  readonly at: (name: Buffer) => Buffer;
  readonly close: () => Promise<void>;
}

type Parent =
  | { readonly kind: 'open'; readonly place: HostPlace }
  | Extract<HostState, { kind: 'absent' | 'blocked' }>;

export class HostFolder {
  readonly path: string;
  readonly #handle: FileHandle;
  readonly #byHandle = existsSync('/proc/self/fd');
  #last: { readonly key: string; readonly place: HostPlace } | undefined;

  private constructor(path: string, handle: FileHandle) {
    this.path = path;
    this.#handle = handle;
  }

  /** The folder itself is the user's word: it may be reached through links. */
  static async open(path: string): Promise<HostFolder> {
    try {
      return new HostFolder(path, await open(path, O_RDONLY | O_DIRECTORY));
    } catch (cause) {
      throw new SallyportError('file_not_found', `there is no folder ${path} to bring changes to`, {
        details: { path },
        advice: 'Name another one with `--to`, or take the changes as a patch with `--patch`.',
        cause,
      });
    }
  }

  async close(): Promise<void> {
    await this.forget();
    await this.#handle.close();
  }

  /** The folder that was reached last may be gone, or may be another one. */
  async forget(): Promise<void> {
    const last = this.#last;
    this.#last = undefined;
    await last?.place.close();
  }

  /** What is there, with the hash of a file. */
  async look(path: Buffer): Promise<HostState> {
    const parent = await this.#parent(path, 'look');
    return parent.kind === 'open' ? await stateAt(parent.place.at(nameOf(path))) : parent;
  }

  /** The folder of a path, made where it is missing. Open until the next call of this or of `look`. */
  async provideParent(path: Buffer): Promise<HostPlace> {
    const parent = await this.#parent(path, 'make');
    if (parent.kind === 'open') return parent.place;
    throw new SallyportError(
      'tree_refused',
      `${JSON.stringify(path.toString('utf8'))} was not written: a folder above it is a link here, or no folder`,
      { details: { path: path.toString('utf8') } },
    );
  }

  /** All paths below a folder, without following links. */
  async *below(path: Buffer): AsyncGenerator<Buffer> {
    const folder = Buffer.concat([path, slash]);
    const parent = await this.#openParent(Buffer.concat([folder, Buffer.from('x')]), 'look');
    if (parent.kind !== 'open') return;
    const { place } = parent;
    try {
      for (const entry of await readdir(place.at(Buffer.from('.')), {
        encoding: 'buffer',
        withFileTypes: true,
      })) {
        const child = Buffer.concat([folder, entry.name as unknown as Buffer]);
        yield child;
        if (entry.isDirectory()) yield* this.below(child);
      }
    } finally {
      await place.close();
    }
  }

  /** Of many paths one after the other most have the same. */
  async #parent(path: Buffer, how: 'look' | 'make'): Promise<Parent> {
    const key = path.subarray(0, Math.max(0, path.lastIndexOf(0x2f))).toString('latin1');
    if (this.#last?.key === key) return { kind: 'open', place: this.#last.place };
    await this.forget();
    const parent = await this.#openParent(path, how);
    if (parent.kind === 'open') this.#last = { key, place: parent.place };
    return parent;
  }

  async #openParent(path: Buffer, how: 'look' | 'make'): Promise<Parent> {
    let handle = this.#handle;
    const close = async (): Promise<void> => {
      if (handle !== this.#handle) await handle.close();
    };
    let reached: Buffer = Buffer.alloc(0);
    for (const name of partsOf(path).slice(0, -1)) {
      const next = this.#join(handle, reached, name);
      const passed = reached.length === 0 ? name : Buffer.concat([reached, slash, name]);
      if (how === 'make')
        await mkdir(next).catch((error: NodeJS.ErrnoException) => {
          if (error.code !== 'EEXIST') throw error;
        });
      const opened = await open(next, O_RDONLY | O_DIRECTORY | O_NOFOLLOW).catch(
        (error: NodeJS.ErrnoException) => error,
      );
      await close();
      if (opened instanceof Error) {
        if (opened.code === 'ENOENT') return { kind: 'absent' };
        if (opened.code === 'ENOTDIR' || opened.code === 'ELOOP') return { kind: 'blocked', at: passed };
        throw opened;
      }
      handle = opened;
      reached = passed;
    }
    const [last, where] = [handle, reached];
    return { kind: 'open', place: { at: (name) => this.#join(last, where, name), close } };
  }

  #join(handle: FileHandle, reached: Buffer, name: Buffer): Buffer {
    if (this.#byHandle) return Buffer.concat([Buffer.from(`/proc/self/fd/${handle.fd}/`), name]);
    const folder = reached.length === 0 ? [] : [reached, slash];
    return Buffer.concat([Buffer.from(`${this.path}/`), ...folder, name]);
  }
}

export const nameOf = (path: Buffer): Buffer => path.subarray(path.lastIndexOf(0x2f) + 1);

function partsOf(path: Buffer): readonly Buffer[] {
  return path
    .toString('latin1')
    .split('/')
    .map((part) => Buffer.from(part, 'latin1'));
}

const stampOf = ({ dev, ino, size, mtimeNs, ctimeNs }: BigIntStats): string =>
  [dev, ino, size, mtimeNs, ctimeNs].join(':');

async function stateAt(path: Buffer): Promise<HostState> {
  const facts = await lstat(path, { bigint: true }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  if (facts === undefined) return { kind: 'absent' };
  if (facts.isDirectory()) return { kind: 'directory' };
  if (facts.isSymbolicLink())
    return {
      kind: 'symlink',
      linkTarget: await readlink(path, { encoding: 'buffer' }),
      stamp: stampOf(facts),
    };
  return facts.isFile() ? await fileState(path) : { kind: 'other' };
}

/** One byte more than a small file has, so that one read is all of it. */
const chunkBytes = (size: bigint): number => Math.min(256 * 1024, Number(size) + 1);

async function fileState(path: Buffer): Promise<HostState> {
  // What was a file a moment ago may be a link or a pipe by now.
  const file = await open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  try {
    const facts = await file.stat({ bigint: true });
    const hash = createHash('sha256');
    for (const chunk = Buffer.allocUnsafe(chunkBytes(facts.size)); ; ) {
      const { bytesRead } = await file.read(chunk, 0, chunk.length, null);
      if (bytesRead === 0) break;
      hash.update(chunk.subarray(0, bytesRead));
    }
    return {
      kind: 'file',
      mode: Number(facts.mode & 0o777n),
      uid: Number(facts.uid),
      gid: Number(facts.gid),
      sha256: hash.digest('hex'),
      stamp: stampOf(facts),
    };
  } finally {
    await file.close();
  }
}

/** Whether it is still what it was, without reading it again. */
export async function isUnchanged(path: Buffer, expected: HostState): Promise<boolean> {
  const facts = await lstat(path, { bigint: true }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  if (facts === undefined) return expected.kind === 'absent';
  if (expected.kind === 'directory') return facts.isDirectory();
  return 'stamp' in expected && expected.stamp === stampOf(facts);
}
