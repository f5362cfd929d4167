/** Frames of a WebSocket as a client sends and reads them (RFC 6455, section 5). */

export const opcode = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;

export interface Message {
  readonly opcode: number;
  readonly data: Buffer;
}

const final = 0x80;
const masked = 0x80;
const reserved = 0x70;
const isControl = (kind: number): boolean => (kind & 8) !== 0;

/** A whole message in one frame. A client masks what it sends, or the other end must refuse it. */
export function frameOf(kind: number, data: Buffer): Buffer {
  const lengthBytes = data.length < 126 ? 0 : data.length < 65_536 ? 2 : 8;
  const frame = Buffer.allocUnsafe(2 + lengthBytes + 4 + data.length);
  frame[0] = final | kind;
  if (lengthBytes === 0) frame[1] = masked | data.length;
  else if (lengthBytes === 2) {
    frame[1] = masked | 126;
    frame.writeUInt16BE(data.length, 2);
  } else {
    frame[1] = masked | 127;
    frame.writeBigUInt64BE(BigInt(data.length), 2);
  }
  const maskAt = 2 + lengthBytes;
  frame.writeUInt32BE(Math.floor(Math.random() * 2 ** 32), maskAt);
  const bodyAt = maskAt + 4;
  for (let index = 0; index < data.length; index++) {
    frame[bodyAt + index] = (data[index] ?? 0) ^ (frame[maskAt + (index & 3)] ?? 0);
  }
  return frame;
}

/** From bytes in any pieces to whole messages. Throws at what a server must not send. */
export class FrameReader {
  readonly #mostBytes: number;
  #chunks: Buffer[] = [];
  #bytes = 0;
  /** Of a message that comes in several frames. */
  #parts: Buffer[] = [];
  #partBytes = 0;
  #partKind: number | undefined;

  constructor(mostBytes: number) {
    this.#mostBytes = mostBytes;
  }

  push(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
  }

  /** Undefined: more bytes are needed. */
  next(): Message | undefined {
    for (;;) {
      const frame = this.#frame();
      if (frame === undefined) return undefined;
      const { kind, isFinal, data } = frame;
      if (isControl(kind)) return { opcode: kind, data };
      if ((kind === opcode.continuation) !== (this.#partKind !== undefined)) {
        throw new Error('a frame of the WebSocket comes out of turn');
      }
      this.#partKind ??= kind;
      this.#parts.push(data);
      this.#partBytes += data.length;
      if (this.#partBytes > this.#mostBytes) throw tooLong();
      if (isFinal) return this.#whole();
    }
  }

  #whole(): Message {
    const [only] = this.#parts;
    const data = only !== undefined && this.#parts.length === 1 ? only : Buffer.concat(this.#parts);
    const message = { opcode: this.#partKind ?? opcode.binary, data };
    this.#parts = [];
    this.#partBytes = 0;
    this.#partKind = undefined;
    return message;
  }

  #frame(): { readonly kind: number; readonly isFinal: boolean; readonly data: Buffer } | undefined {
    const head = this.#peek(2);
    if (head === undefined) return undefined;
    const [first = 0, second = 0] = head;
    const kind = first & 0x0f;
    const isFinal = (first & final) !== 0;
    const short = second & 0x7f;
    if ((first & reserved) !== 0 || (second & masked) !== 0)
      throw new Error('a frame of the WebSocket is malformed');
    if (isControl(kind) && (!isFinal || short > 125))
      throw new Error('a control frame of the WebSocket is malformed');
    const lengthBytes = short < 126 ? 0 : short === 126 ? 2 : 8;
    const header = this.#peek(2 + lengthBytes);
    if (header === undefined) return undefined;
    const length =
      lengthBytes === 0 ? short : lengthBytes === 2 ? header.readUInt16BE(2) : longLength(header);
    if (length > this.#mostBytes) throw tooLong();
    if (this.#bytes < header.length + length) return undefined;
    this.#take(header.length);
    return { kind, isFinal, data: this.#take(length) };
  }

  #peek(count: number): Buffer | undefined {
    if (this.#bytes < count) return undefined;
    const [first] = this.#chunks;
    if (first !== undefined && first.length >= count) return first.subarray(0, count);
    this.#chunks = [Buffer.concat(this.#chunks)];
    return this.#chunks[0]?.subarray(0, count);
  }

  #take(count: number): Buffer {
    if (count === 0) return Buffer.alloc(0);
    const [first] = this.#chunks;
    if (first === undefined || first.length < count) this.#chunks = [Buffer.concat(this.#chunks)];
    const all = this.#chunks[0] ?? Buffer.alloc(0);
    const taken = all.subarray(0, count);
    if (taken.length === all.length) this.#chunks.shift();
    else this.#chunks[0] = all.subarray(count);
    this.#bytes -= count;
    return taken;
  }
}

/** Above what a number holds is above every limit as well. */
const longLength = (header: Buffer): number => Number(header.readBigUInt64BE(2));

const tooLong = (): Error => new Error('a message of the WebSocket is longer than any that is sent');
