/**
 * A folder of this machine to which changes from a sandbox are brought, by relative paths that are bytes.
 *
 * SECURITY: the paths are hostile, and somebody else may write to the folder at the same time. Every step goes from an open
 * directory to a name in it and follows no link (`open-folder.ts`).
 *
 * Calls block, because there are many and each takes microseconds: whoever makes many of them takes turns. Only the content of a
 * large file is read otherwise.
 */

import {
  type BigIntStats,
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  read,
  readdirSync,
  readlinkSync,
  readSync,
} from 'node:fs';
import { promisify } from 'node:util';
import { ContentHash, holesPrefix } from '../lib/content-hash.ts';
import { OpenFolder } from '../lib/open-folder.ts';
import { SallyportError } from '../protocol/errors.ts';

const readAsync = promisify(read);
const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants;
const slash = Buffer.from('/');

export type HostState =
  | { readonly kind: 'absent' }
  | {
      readonly kind: 'file';
      readonly mode: number;
      /** Absent: its size says that it is none of those with which it is compared, or it has too many holes. */
      readonly sha256?: string;
      /** It would take minutes to read them: Node cannot ask the system where they are. */
      readonly hasManyHoles?: true;
      /** Of a file with holes that is compared with one that was hashed before holes counted. */
      readonly plainSha256?: string;
      readonly uid: number;
      readonly gid: number;
      readonly stamp: string;
    }
  | { readonly kind: 'symlink'; readonly linkTarget: Buffer; readonly stamp: string }
  | { readonly kind: 'directory' }
  | { readonly kind: 'other' }
  /** What is above it is a link, or no folder. */
  | { readonly kind: 'blocked'; readonly at: Buffer };

/** The files with one of which a file may be equal. */
export interface ComparedFiles {
  readonly sizes: readonly number[];
  /** The hash of one of them, which may be of before holes counted. */
  readonly sha256?: string | undefined;
}

/** What has more of them is not read. */
export const mostHoleBytes = 16 * 2 ** 30;

type Parent =
  | { readonly kind: 'open'; readonly folder: OpenFolder }
  | Extract<HostState, { kind: 'absent' | 'blocked' }>;

export class HostFolder {
  readonly path: string;
  readonly #root: OpenFolder;
  #last: { readonly key: string; readonly folder: OpenFolder } | undefined;

  private constructor(path: string, root: OpenFolder) {
    this.path = path;
    this.#root = root;
  }

  /** The folder itself is the user's word: it may be reached through links. */
  static open(path: string): HostFolder {
    try {
      return new HostFolder(path, OpenFolder.at(path));
    } catch (cause) {
      throw new SallyportError('file_not_found', `there is no folder ${path} to bring changes to`, {
        details: { path },
        advice: 'Name another one with `--to`, or take the changes as a patch with `--patch`.',
        cause,
      });
    }
  }

  /** Open until this is closed. */
  get root(): OpenFolder {
    return this.#root;
  }

  close(): void {
    this.forget();
    this.#root.close();
  }

  /** The folder that was reached last may be gone, or may be another one. */
  forget(): void {
    const last = this.#last;
    this.#last = undefined;
    if (last !== undefined) this.#leave(last.folder);
  }

  /** What is there, with the hash of a file where it may be one of those with which it is compared. */
  async look(path: Buffer, compared: ComparedFiles = { sizes: [] }): Promise<HostState> {
    const parent = this.#parent(path, 'look');
    return parent.kind === 'open' ? await stateAt(parent.folder.child(nameOf(path)), compared) : parent;
  }

  /** Whether it is still what it was, and reached by the same folders; `cleared` says of what is in its way that it goes. */
  isStill(path: Buffer, state: HostState, cleared: (at: Buffer) => boolean): boolean {
    const parent = this.#parent(path, 'look');
    if (parent.kind === 'open') return isUnchanged(parent.folder.child(nameOf(path)), state);
    return state.kind === 'absent' && (parent.kind === 'absent' || cleared(parent.at));
  }

  /** The folder of a path, made where it is missing. Open until the next call of this or of `look`. */
  provideParent(path: Buffer): OpenFolder {
    const parent = this.#parent(path, 'make');
    if (parent.kind === 'open') return parent.folder;
    throw new SallyportError(
      'tree_refused',
      `${JSON.stringify(path.toString('utf8'))} was not written: a folder above it is a link here, or no folder`,
      { details: { path: path.toString('utf8') } },
    );
  }

  /** All paths below a folder, without following links. */
  *below(path: Buffer): Generator<Buffer> {
    const inside = Buffer.concat([path, slash]);
    const parent = this.#openParent(Buffer.concat([inside, Buffer.from('x')]), 'look');
    if (parent.kind !== 'open') return;
    const { folder } = parent;
    try {
      for (const entry of readdirSync(folder.path, { encoding: 'buffer', withFileTypes: true })) {
        const child = Buffer.concat([inside, entry.name as unknown as Buffer]);
        yield child;
        if (entry.isDirectory()) yield* this.below(child);
      }
    } finally {
      this.#leave(folder);
    }
  }

  /** Of many paths one after the other most have the same. */
  #parent(path: Buffer, how: 'look' | 'make'): Parent {
    const key = path.subarray(0, Math.max(0, path.lastIndexOf(0x2f))).toString('latin1');
    if (this.#last?.key === key) return { kind: 'open', folder: this.#last.folder };
    this.forget();
    const parent = this.#openParent(path, how);
    if (parent.kind === 'open') this.#last = { key, folder: parent.folder };
    return parent;
  }

  #openParent(path: Buffer, how: 'look' | 'make'): Parent {
    let folder = this.#root;
    let reached: Buffer = Buffer.alloc(0);
    for (const name of partsOf(path).slice(0, -1)) {
      const passed = reached.length === 0 ? name : Buffer.concat([reached, slash, name]);
      try {
        if (how === 'make') makeFolder(folder.child(name));
        const next = folder.enter(name);
        this.#leave(folder);
        folder = next;
        reached = passed;
      } catch (error) {
        this.#leave(folder);
        const { code } = error as NodeJS.ErrnoException;
        if (code === 'ENOENT') return { kind: 'absent' };
        if (code === 'ENOTDIR' || code === 'ELOOP') return { kind: 'blocked', at: passed };
        throw error;
      }
    }
    return { kind: 'open', folder };
  }

  #leave(folder: OpenFolder): void {
    if (folder !== this.#root) folder.close();
  }
}

function makeFolder(at: Buffer): void {
  try {
    mkdirSync(at);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
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

const factsAt = (path: Buffer): BigIntStats | undefined =>
  lstatSync(path, { bigint: true, throwIfNoEntry: false });

async function stateAt(path: Buffer, compared: ComparedFiles): Promise<HostState> {
  const facts = factsAt(path);
  if (facts === undefined) return { kind: 'absent' };
  if (facts.isDirectory()) return { kind: 'directory' };
  if (facts.isSymbolicLink())
    return { kind: 'symlink', linkTarget: readlinkSync(path, { encoding: 'buffer' }), stamp: stampOf(facts) };
  return facts.isFile() ? await fileState(path, compared) : { kind: 'other' };
}

const chunkBytes = 256 * 1024;

async function fileState(path: Buffer, compared: ComparedFiles): Promise<HostState> {
  // What was a file a moment ago may be a link or a pipe by now.
  const fd = openSync(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  try {
    const facts = fstatSync(fd, { bigint: true });
    return {
      kind: 'file',
      mode: Number(facts.mode & 0o777n),
      uid: Number(facts.uid),
      gid: Number(facts.gid),
      ...(await hashesOf(fd, facts, compared)),
      stamp: stampOf(facts),
    };
  } finally {
    closeSync(fd);
  }
}

const blockBytes = 512n;

async function hashesOf(
  fd: number,
  { size, blocks }: BigIntStats,
  { sizes, sha256: known }: ComparedFiles,
): Promise<Pick<Extract<HostState, { kind: 'file' }>, 'sha256' | 'plainSha256' | 'hasManyHoles'>> {
  if (!sizes.includes(Number(size))) return {};
  if (size - blocks * blockBytes > mostHoleBytes) return { hasManyHoles: true };
  const hash = new ContentHash({ plain: known?.startsWith(holesPrefix) === false });
  await readInto(fd, size, (chunk) => hash.update(chunk));
  const plainSha256 = hash.plainDigest();
  return { sha256: hash.digest(), ...(plainSha256 === undefined ? {} : { plainSha256 }) };
}

async function readInto(fd: number, size: bigint, take: (chunk: Buffer) => void): Promise<void> {
  const isSmall = size < chunkBytes;
  // One byte more than a small file has, so that one read is all of it.
  const chunk = Buffer.allocUnsafe(isSmall ? Number(size) + 1 : chunkBytes);
  for (;;) {
    const bytesRead = isSmall
      ? readSync(fd, chunk, 0, chunk.length, null)
      : (await readAsync(fd, chunk, 0, chunk.length, null)).bytesRead;
    take(chunk.subarray(0, bytesRead));
    if (bytesRead === 0 || (isSmall && bytesRead === Number(size))) break;
  }
}

/** Whether it is still what it was, without reading it again. */
export function isUnchanged(path: Buffer, expected: HostState): boolean {
  const facts = factsAt(path);
  if (facts === undefined) return expected.kind === 'absent';
  if (expected.kind === 'directory') return facts.isDirectory();
  return 'stamp' in expected && expected.stamp === stampOf(facts);
}
