/**
 * The records of a whole tree in one stream: docs/protocol.md, section 6.
 *
 * What comes from porter is hostile. The decoder lets no path through that is absolute, has an empty, `.` or `..` part or a
 * NUL. It does not remember what came before: whoever writes entries to a disk must still not follow a link that an earlier
 * entry made.
 */

import { type FileKind, kindNumber, readKind } from './stat-record.ts';
import { violation } from './violation.ts';

/** Only towards porter: another name of a file that was put before. */
const hardLinkNumber = 5;
/** Only from porter: a file whose content comes as extents, and one whose content was not sent. */
const sparseNumber = 6;
const unsentNumber = 7;

export interface TreeHeader {
  /** `other`: something that is there and is not sent (a FIFO, a device, a file that may not be read). */
  readonly kind: FileKind;
  /** Relative to the tree's root. */
  readonly path: Buffer;
  readonly mode: number;
  /** 0: unknown, or not to be set. */
  readonly mtimeNs: bigint;
  /** Of a file; 0 for all others. */
  readonly sizeBytes: number;
  /** Of a link; empty for all others. */
  readonly target: Buffer;
  /** Of a file that is beyond the limits of the request: it has a size and no content. */
  readonly isUnsent?: true;
}

const fixedBytes = 24;
const maxPathBytes = 4096;
/** A tree with more is refused wherever something is kept of each entry. */
export const mostTreeEntries = 2_000_000;

/** What porter is asked to put. */
export type PutHeader = Omit<TreeHeader, 'kind'> & { readonly kind: FileKind | 'hardlink' };

export function encodeTreeHeader(header: PutHeader): Buffer {
  const { path, target } = header;
  const out = Buffer.allocUnsafe(fixedBytes + 8 + path.length + target.length);
  const { kind } = header;
  out.writeUInt32LE(kind === 'hardlink' ? hardLinkNumber : kindNumber(kind), 0);
  out.writeUInt32LE(header.mode, 4);
  out.writeBigUInt64LE(header.mtimeNs, 8);
  out.writeBigUInt64LE(BigInt(header.sizeBytes), 16);
  out.writeUInt32LE(path.length, fixedBytes);
  path.copy(out, fixedBytes + 4);
  out.writeUInt32LE(target.length, fixedBytes + 4 + path.length);
  target.copy(out, fixedBytes + 8 + path.length);
  return out;
}

export type TreeEvent =
  | { readonly type: 'entry'; readonly header: TreeHeader }
  | { readonly type: 'body'; readonly data: Buffer }
  /** Zeros that were not sent. SECURITY: their number is porter's word; nobody makes that many bytes of them at once. */
  | { readonly type: 'hole'; readonly bytes: number };

interface Extents {
  readonly sizeBytes: number;
  /** Where the last one ended. */
  at: number;
}

export class TreeDecoder {
  /** The beginning of a header; at most one header long. */
  #pending: Buffer = Buffer.alloc(0);
  #bodyLeft = 0;
  #extents: Extents | undefined;

  /** Each file's entry is followed by as much body as its header says, in pieces. */
  *push(chunk: Buffer): Generator<TreeEvent> {
    let rest = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk]);
    while (rest.length > 0) {
      if (this.#bodyLeft > 0) {
        const data = rest.subarray(0, this.#bodyLeft);
        this.#bodyLeft -= data.length;
        rest = rest.subarray(data.length);
        yield { type: 'body', data };
        continue;
      }
      if (this.#extents !== undefined) {
        if (rest.length < extentBytes) break;
        const hole = this.#readExtent(rest, this.#extents);
        rest = rest.subarray(extentBytes);
        if (hole > 0) yield { type: 'hole', bytes: hole };
        continue;
      }
      const length = headerLength(rest);
      if (length === undefined || rest.length < length) break;
      const { header, isSparse } = readHeader(rest.subarray(0, length));
      rest = rest.subarray(length);
      if (isSparse) this.#extents = { sizeBytes: header.sizeBytes, at: 0 };
      else if (header.isUnsent !== true) this.#bodyLeft = header.sizeBytes;
      yield { type: 'entry', header };
    }
    this.#pending = rest.length === 0 ? rest : Buffer.from(rest);
  }

  /** The hole before it. The last one is empty and stands at the end of the file. */
  #readExtent(bytes: Buffer, extents: Extents): number {
    const offset = Number(bytes.readBigUInt64LE(0));
    const length = Number(bytes.readBigUInt64LE(8));
    const isLast = length === 0 && offset === extents.sizeBytes;
    const isInside = offset >= extents.at && offset + length <= extents.sizeBytes;
    if (!isInside || (length === 0 && !isLast)) throw violation('an extent that is not in its file');
    const hole = offset - extents.at;
    extents.at = offset + length;
    this.#bodyLeft = length;
    if (isLast) this.#extents = undefined;
    return hole;
  }

  end(): void {
    if (this.#pending.length > 0 || this.#bodyLeft > 0 || this.#extents !== undefined)
      throw violation('a tree that breaks off');
  }
}

const extentBytes = 16;

/** Undefined when not even the lengths are there yet. */
function headerLength(bytes: Buffer): number | undefined {
  if (bytes.length < fixedBytes + 4) return undefined;
  const pathBytes = bytes.readUInt32LE(fixedBytes);
  if (pathBytes > maxPathBytes) throw violation(`a path of ${pathBytes} bytes`);
  const targetAt = fixedBytes + 4 + pathBytes;
  if (bytes.length < targetAt + 4) return undefined;
  const targetBytes = bytes.readUInt32LE(targetAt);
  if (targetBytes > maxPathBytes) throw violation(`a link of ${targetBytes} bytes`);
  return targetAt + 4 + targetBytes;
}

function readHeader(bytes: Buffer): { readonly header: TreeHeader; readonly isSparse: boolean } {
  const pathBytes = bytes.readUInt32LE(fixedBytes);
  const size = bytes.readBigUInt64LE(16);
  const number = bytes.readUInt32LE(0);
  const isSparse = number === sparseNumber;
  const isUnsent = number === unsentNumber;
  const header: TreeHeader = {
    kind: isSparse || isUnsent ? 'file' : readKind(number),
    mode: bytes.readUInt32LE(4),
    mtimeNs: bytes.readBigUInt64LE(8),
    sizeBytes: Number(size),
    path: Buffer.from(bytes.subarray(fixedBytes + 4, fixedBytes + 4 + pathBytes)),
    target: Buffer.from(bytes.subarray(fixedBytes + 8 + pathBytes)),
    ...(isUnsent ? { isUnsent } : {}),
  };
  if (size > BigInt(Number.MAX_SAFE_INTEGER)) throw violation('a size beyond all files');
  if (header.mode > 0o777) throw violation(`mode ${header.mode}`);
  if (header.kind !== 'file' && header.sizeBytes !== 0) throw violation('content of what is not a file');
  if ((header.kind === 'link') !== header.target.length > 0) throw violation('a target without a link');
  if (!isTreePath(header.path) || header.target.includes(0)) throw violation('a path that leads elsewhere');
  return { header, isSparse };
}

/** Not absolute, and without empty, `.` or `..` part. */
export function isTreePath(path: Buffer): boolean {
  if (path.length > maxPathBytes || path.includes(0)) return false;
  // As latin1 each byte is one character, so nothing in a name can look like a slash or a dot that is none.
  return path
    .toString('latin1')
    .split('/')
    .every((part) => part !== '' && part !== '.' && part !== '..');
}
