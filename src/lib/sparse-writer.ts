/**
 * Writes a file from its beginning and leaves holes where there are only zeros: a file with holes from inside a sandbox
 * would fill the disk of this machine.
 */

import { ftruncateSync, write } from 'node:fs';
import { promisify } from 'node:util';
import { isHole, type Piece } from './content-hash.ts';

const writeAsync = promisify(write);
/** A block of most file systems; what is smaller is not worth a hole. */
const smallestHoleBytes = 4096;
const zeros = Buffer.alloc(64 * 1024);

/**
 * Where a file has data, in its order: the beginning and the exclusive end of each stretch, in turn. Not as objects, because
 * a file with 16 GiB of data may have some millions of stretches.
 */
export type DataBounds = readonly number[];

export class SparseWriter {
  readonly #fd: number;
  readonly #bounds: number[] = [];
  #at = 0;
  #endsInHole = false;

  /** `fd`: of an empty file, which stays the caller's to close. */
  constructor(fd: number) {
    this.#fd = fd;
  }

  async write(chunk: Piece): Promise<void> {
    if (isHole(chunk)) {
      this.#at += chunk.holeBytes;
      this.#endsInHole = true;
      return;
    }
    if (chunk.length === 0) return;
    this.#endsInHole = isWrittenAsHole(chunk);
    if (this.#endsInHole) {
      this.#at += chunk.length;
      return;
    }
    const from = this.#at;
    for (let done = 0; done < chunk.length; ) {
      const { bytesWritten } = await writeAsync(this.#fd, chunk, done, chunk.length - done, this.#at);
      done += bytesWritten;
      this.#at += bytesWritten;
    }
    if (this.#bounds.at(-1) === from) this.#bounds.pop();
    else this.#bounds.push(from);
    this.#bounds.push(this.#at);
  }

  /** What was written; the rest is holes. */
  get data(): DataBounds {
    return this.#bounds;
  }

  /** Gives the file its size, where it ends in a hole. */
  end(): void {
    if (this.#endsInHole) ftruncateSync(this.#fd, this.#at);
  }
}

/** It takes no room on the disk. */
export function isWrittenAsHole(chunk: Uint8Array): boolean {
  if (chunk.length < smallestHoleBytes) return false;
  for (let from = 0; from < chunk.length; from += zeros.length) {
    const piece = chunk.subarray(from, from + zeros.length);
    if (zeros.compare(piece, 0, piece.length, 0, piece.length) !== 0) return false;
  }
  return true;
}
