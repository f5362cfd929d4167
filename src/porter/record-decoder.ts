/** Records of (u32 kind, bytes), as a listing and a watch are made of, out of any chopping of the stream. */

import { violation } from './link.ts';

export interface KindRecord {
  readonly kind: number;
  readonly bytes: Buffer;
}

const headBytes = 8;

export class RecordDecoder {
  readonly #maxBytes: number;
  #pending: Buffer = Buffer.alloc(0);

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  *push(chunk: Buffer): Generator<KindRecord> {
    const all = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk]);
    let at = 0;
    while (all.length - at >= headBytes) {
      const length = all.readUInt32LE(at + 4);
      if (length > this.#maxBytes) throw violation(`a name of ${length} bytes`);
      if (all.length - at < headBytes + length) break;
      const start = at + headBytes;
      at = start + length;
      yield { kind: all.readUInt32LE(start - headBytes), bytes: Buffer.from(all.subarray(start, at)) };
    }
    this.#pending = Buffer.from(all.subarray(at));
  }

  /** Nothing may be left over. */
  end(): void {
    if (this.#pending.length > 0) throw violation('a record that breaks off');
  }
}
