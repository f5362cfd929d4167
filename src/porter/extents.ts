/**
 * The content of a file as extents (docs/protocol.md, section 6): data with its place, and holes between. The last extent is
 * empty and stands at the end.
 *
 * SECURITY: extents from porter are hostile. A hole is a number here and never so many bytes.
 */

import type { Hole } from '../lib/content-hash.ts';
import { violation } from './violation.ts';

const headBytes = 16;

export class ExtentDecoder {
  /** The beginning of a head. */
  #pending: Buffer = Buffer.alloc(0);
  #at: number;
  readonly #most: number;
  #dataLeft = 0;
  #isOver = false;

  /** `until`: where the part ends that was asked for. */
  constructor(from = 0, until = Number.MAX_SAFE_INTEGER) {
    this.#at = from;
    this.#most = until;
  }

  *push(chunk: Buffer): Generator<Buffer | Hole> {
    let rest = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk]);
    while (rest.length > 0) {
      if (this.#isOver) throw violation('data after the last extent');
      if (this.#dataLeft > 0) {
        const data = rest.subarray(0, this.#dataLeft);
        this.#dataLeft -= data.length;
        rest = rest.subarray(data.length);
        yield data;
        continue;
      }
      if (rest.length < headBytes) break;
      const holeBytes = this.#readHead(rest);
      rest = rest.subarray(headBytes);
      if (holeBytes > 0) yield { holeBytes };
    }
    this.#pending = rest.length === 0 ? rest : Buffer.from(rest);
  }

  end(): void {
    if (!this.#isOver) throw violation('a file that breaks off');
  }

  #readHead(bytes: Buffer): number {
    const offset = Number(bytes.readBigUInt64LE(0));
    const length = Number(bytes.readBigUInt64LE(8));
    const hole = offset - this.#at;
    if (hole < 0 || offset + length > this.#most) throw violation('an extent that is not in its file');
    this.#at = offset + length;
    this.#dataLeft = length;
    this.#isOver = length === 0;
    return hole;
  }
}

/** Content without holes as extents. */
export async function* encodeExtents(chunks: AsyncIterable<Buffer>, from = 0): AsyncGenerator<Buffer> {
  let at = from;
  for await (const chunk of chunks) {
    yield head(at, chunk.length);
    yield chunk;
    at += chunk.length;
  }
  yield head(at, 0);
}

export async function* decodeExtents(
  chunks: AsyncIterable<Buffer>,
  from?: number,
  until?: number,
): AsyncGenerator<Buffer | Hole> {
  const decoder = new ExtentDecoder(from, until);
  for await (const chunk of chunks) yield* decoder.push(chunk);
  decoder.end();
}

function head(offset: number, length: number): Buffer {
  const bytes = Buffer.alloc(headBytes);
  bytes.writeBigUInt64LE(BigInt(offset), 0);
  bytes.writeBigUInt64LE(BigInt(length), 8);
  return bytes;
}
