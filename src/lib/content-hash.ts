/**
 * The hash by which contents of files are compared. A block of zeros is a hole, whether the file system has one there or
 * zeros are written out, and costs nothing: a file of 1 TiB without data is hashed at once.
 *
 * A file without such a block has its plain SHA-256. The hash of any other one is `holes:` and the SHA-256 of its data's
 * hash, its holes' hash and its size. SECURITY: without the prefix a program inside could write a small file that has the
 * hash of a large one.
 */

import { createHash, type Hash } from 'node:crypto';

/** Zeros that are not there as bytes. */
export interface Hole {
  readonly holeBytes: number;
}
/** Content in order: bytes, or a hole. */
export type Piece = Uint8Array | Hole;

export const isHole = (piece: Piece): piece is Hole => 'holeBytes' in piece;

/** Whole blocks of zeros at multiples of this are holes. */
export const holeBlockBytes = 64 * 1024;
const zeros = Buffer.alloc(holeBlockBytes);
export const holesPrefix = 'holes:';
export const contentHashPattern = /^(?:holes:)?[0-9a-f]{64}$/;

export class ContentHash {
  readonly #data = createHash('sha256');
  readonly #holes = createHash('sha256');
  #size = 0;
  /** The hole that ends where the content does by now. */
  #hole = { from: 0, until: 0 };
  /** Zeros at the end that are not yet a whole block; they begin where a block does. */
  #pendingZeros = 0;
  #hasHoles = false;
  #hashedBytes = 0;
  readonly #keepsPlain: boolean;
  /** From the first hole on; before it there is no difference. */
  #plain: Hash | undefined;

  /** `plain`: also what `digest` would be if no zeros were holes. Those are then hashed, so give them in small pieces. */
  constructor({ plain = false }: { readonly plain?: boolean } = {}) {
    this.#keepsPlain = plain;
  }

  /** What was hashed: all but the holes. */
  get hashedBytes(): number {
    return this.#hashedBytes;
  }

  update(piece: Piece): this {
    if (isHole(piece)) this.#skip(piece.holeBytes);
    else this.#add(piece);
    return this;
  }

  digest(): string {
    this.#flushZeros();
    this.#flushHole();
    const data = this.#data.digest();
    if (!this.#hasHoles) return data.toString('hex');
    const all = createHash('sha256').update(data).update(this.#holes.digest()).update(number(this.#size));
    return holesPrefix + all.digest('hex');
  }

  /** Undefined: there is no hole, or it was not asked for. Before `digest`. */
  plainDigest(): string | undefined {
    this.#flushZeros();
    return this.#plain?.digest('hex');
  }

  #add(bytes: Uint8Array): void {
    let dataFrom = 0;
    for (let at = 0; at < bytes.length; ) {
      const leftInBlock = holeBlockBytes - (this.#size % holeBlockBytes);
      const part = bytes.subarray(at, at + leftInBlock);
      const mayBeHole = leftInBlock === holeBlockBytes || this.#pendingZeros > 0;
      if (mayBeHole && isZero(part)) {
        this.#hash(bytes.subarray(dataFrom, at));
        dataFrom = at + part.length;
        this.#pendZeros(part.length);
      } else {
        // Zeros that were held back stand before this part, and nothing of this chunk does.
        this.#flushZeros();
        this.#size += part.length;
      }
      at += part.length;
    }
    this.#hash(bytes.subarray(dataFrom));
  }

  #skip(bytes: number): void {
    const inBlock = this.#size % holeBlockBytes;
    let left = bytes;
    if (inBlock > 0) {
      const rest = Math.min(left, holeBlockBytes - inBlock);
      this.#add(zeros.subarray(0, rest));
      left -= rest;
    }
    const whole = left - (left % holeBlockBytes);
    this.#markHole(whole);
    this.#add(zeros.subarray(0, left - whole));
  }

  #pendZeros(bytes: number): void {
    this.#pendingZeros += bytes;
    this.#size += bytes;
    if (this.#pendingZeros < holeBlockBytes) return;
    this.#size -= this.#pendingZeros;
    this.#pendingZeros = 0;
    this.#markHole(holeBlockBytes);
  }

  #markHole(bytes: number): void {
    if (bytes === 0) return;
    if (this.#keepsPlain) this.#plain ??= this.#data.copy();
    for (let left = this.#plain === undefined ? 0 : bytes; left > 0; left -= holeBlockBytes)
      this.#plain?.update(zeros);
    if (this.#hole.until !== this.#size) this.#flushHole();
    if (this.#hole.until === this.#hole.from) this.#hole = { from: this.#size, until: this.#size };
    this.#size += bytes;
    this.#hole.until = this.#size;
    this.#hasHoles = true;
  }

  #flushHole(): void {
    const { from, until } = this.#hole;
    if (until > from) this.#holes.update(number(from)).update(number(until));
    this.#hole = { from: this.#size, until: this.#size };
  }

  #flushZeros(): void {
    this.#hash(zeros.subarray(0, this.#pendingZeros));
    this.#pendingZeros = 0;
  }

  #hash(bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    this.#data.update(bytes);
    this.#plain?.update(bytes);
    this.#hashedBytes += bytes.length;
  }
}

export const contentHash = (content: Uint8Array): string => new ContentHash().update(content).digest();

/** The hash of `content` to compare with `known`, which may be of before holes counted, and so be plain SHA-256. */
export function hashLike(known: string, content: Uint8Array): string {
  return known.startsWith(holesPrefix)
    ? contentHash(content)
    : createHash('sha256').update(content).digest('hex');
}

function isZero(bytes: Uint8Array): boolean {
  if (bytes[0] !== 0) return false;
  return zeros.compare(bytes, 0, bytes.length, 0, bytes.length) === 0;
}

function number(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
}
