/** Fields of a payload: little-endian integers and length-prefixed byte strings. Reading past the end is a violation. */

import { SallyportError } from '../protocol/errors.ts';

export class PayloadWriter {
  readonly #parts: Buffer[] = [];

  u16(value: number): this {
    const part = Buffer.allocUnsafe(2);
    part.writeUInt16LE(value);
    this.#parts.push(part);
    return this;
  }

  u32(value: number): this {
    const part = Buffer.allocUnsafe(4);
    part.writeUInt32LE(value);
    this.#parts.push(part);
    return this;
  }

  u64(value: bigint): this {
    const part = Buffer.allocUnsafe(8);
    part.writeBigUInt64LE(value);
    this.#parts.push(part);
    return this;
  }

  bytes(value: string | Uint8Array): this {
    const part = Buffer.from(value as Uint8Array);
    this.u32(part.length);
    this.#parts.push(part);
    return this;
  }

  list(values: ReadonlyArray<string | Uint8Array>): this {
    this.u32(values.length);
    for (const value of values) this.bytes(value);
    return this;
  }

  end(): Buffer {
    return Buffer.concat(this.#parts);
  }
}

export class PayloadReader {
  readonly #payload: Buffer;
  #at = 0;

  constructor(payload: Buffer) {
    this.#payload = payload;
  }

  u16(): number {
    return this.#take(2).readUInt16LE();
  }

  u32(): number {
    return this.#take(4).readUInt32LE();
  }

  /** As a number: porter counts time and memory, which stay far below 2^53. A larger value is a lie. */
  u64(): number {
    const value = this.#take(8).readBigUInt64LE();
    if (value > BigInt(Number.MAX_SAFE_INTEGER)) throw violation('a number is out of range');
    return Number(value);
  }

  /** For what code inside may set to any value: times, sizes, inodes. */
  bigU64(): bigint {
    return this.#take(8).readBigUInt64LE();
  }

  bytes(): Buffer {
    return this.#take(this.u32());
  }

  /** Nothing may be left over. */
  done(): void {
    if (this.#at !== this.#payload.length) throw violation('a payload is too long');
  }

  rest(): Buffer {
    return this.#take(this.#payload.length - this.#at);
  }

  text(): string {
    return this.bytes().toString('utf8');
  }

  #take(length: number): Buffer {
    if (this.#payload.length - this.#at < length) throw violation('a payload is too short');
    this.#at += length;
    return this.#payload.subarray(this.#at - length, this.#at);
  }
}

function violation(reason: string): SallyportError {
  return new SallyportError('porter_protocol', `bad message from the sandbox: ${reason}`);
}
