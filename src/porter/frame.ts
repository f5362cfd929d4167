/**
 * Frames of the porter protocol: encoding, and a decoder that takes any chopping of the stream.
 *
 * Everything that arrives here is hostile. The decoder holds at most one frame, checks each field before it is used and
 * throws `porter_protocol` on the first byte that cannot be part of a frame.
 */

import { crc32 } from 'node:zlib';
import { SallyportError } from '../protocol/errors.ts';

export const headerBytes = 20;
export const maxPayloadBytes = 64 * 1024;
const magic = 0x5053;
const moreFlag = 1;

/** `docs/protocol.md` says what each is for. Below 0x80 the host sends it, from there on porter; credit goes both ways. */
export const frameType = {
  hello: 0x01,
  credit: 0x02,
  ping: 0x03,
  ack: 0x04,
  exec: 0x10,
  stdin: 0x11,
  signal: 0x12,
  kill: 0x13,
  resize: 0x14,
  forget: 0x15,
  execs: 0x16,
  resume: 0x17,
  file: 0x20,
  cancel: 0x21,
  connect: 0x30,
  stream: 0x31,
  reset: 0x32,
  listen: 0x33,
  unlisten: 0x34,
  answer: 0x35,
  listeners: 0x36,
  welcome: 0x81,
  refused: 0x82,
  superseded: 0x83,
  pong: 0x84,
  notice: 0x85,
  started: 0x90,
  stdout: 0x91,
  stderr: 0x92,
  exit: 0x93,
  notStarted: 0x94,
  execList: 0x95,
  data: 0xa0,
  done: 0xa1,
  connected: 0xb0,
  failed: 0xb1,
  streamOut: 0xb2,
  resetOut: 0xb3,
  listening: 0xb4,
  accepted: 0xb5,
  question: 0xb6,
  listenerList: 0xb7,
  unlistened: 0xb8,
} as const;

export interface Frame {
  readonly type: number;
  readonly epoch: number;
  readonly stream: number;
  readonly payload: Buffer;
  /** The message goes on in the next frame of this type and stream. */
  readonly more: boolean;
}

export function encodeFrame(frame: Frame): Buffer {
  const { type, epoch, stream, payload, more } = frame;
  if (payload.length > maxPayloadBytes) throw new RangeError(`payload of ${payload.length} bytes`);
  const out = Buffer.allocUnsafe(headerBytes + payload.length);
  out.writeUInt16LE(magic, 0);
  out.writeUInt8(type, 2);
  out.writeUInt8(more ? moreFlag : 0, 3);
  out.writeUInt32LE(epoch, 4);
  out.writeUInt32LE(stream, 8);
  out.writeUInt32LE(payload.length, 12);
  payload.copy(out, headerBytes);
  out.writeUInt32LE(crc32(payload, crc32(out.subarray(0, 16))), 16);
  return out;
}

function violation(reason: string): SallyportError {
  return new SallyportError('porter_protocol', `bad frame from the sandbox: ${reason}`);
}

export class FrameDecoder {
  /** A header that is not whole yet; then the frame that it belongs to, in a buffer of exactly its size. */
  readonly #header = Buffer.alloc(headerBytes);
  #frame: Buffer | undefined;
  #filled = 0;

  /** The frames that `chunk` completes. A payload is a view into `chunk` where it can be, a copy where it cannot. */
  *push(chunk: Buffer): Generator<Frame> {
    let offset = 0;
    while (offset < chunk.length) {
      if (this.#filled === 0 && chunk.length - offset >= headerBytes) {
        const whole = headerBytes + checkHeader(chunk.subarray(offset));
        if (chunk.length - offset >= whole) {
          yield checkFrame(chunk.subarray(offset, offset + whole));
          offset += whole;
          continue;
        }
      }
      const into = this.#frame ?? this.#header;
      const taken = chunk.copy(into, this.#filled, offset);
      this.#filled += taken;
      offset += taken;
      if (this.#filled < into.length) continue;
      const frame = this.#frame ?? this.#begin();
      if (this.#filled < frame.length) continue;
      this.#frame = undefined;
      this.#filled = 0;
      yield checkFrame(frame);
    }
  }

  /** True between frames: a stream that ends anywhere else broke off. */
  get atBoundary(): boolean {
    return this.#filled === 0;
  }

  /** The header is whole: now it is known how long the frame is, and that it is no longer than it may be. */
  #begin(): Buffer {
    const frame = Buffer.allocUnsafe(headerBytes + checkHeader(this.#header));
    this.#header.copy(frame);
    this.#frame = frame;
    return frame;
  }
}

function checkHeader(header: Buffer): number {
  if (header.readUInt16LE(0) !== magic) throw violation('no magic');
  if ((header.readUInt8(3) & ~moreFlag) !== 0) throw violation('unknown flags');
  const length = header.readUInt32LE(12);
  if (length > maxPayloadBytes) throw violation(`a payload of ${length} bytes`);
  return length;
}

function checkFrame(bytes: Buffer): Frame {
  const payload = bytes.subarray(headerBytes);
  if (crc32(payload, crc32(bytes.subarray(0, 16))) !== bytes.readUInt32LE(16))
    throw violation('wrong checksum');
  return {
    type: bytes.readUInt8(2),
    more: bytes.readUInt8(3) === moreFlag,
    epoch: bytes.readUInt32LE(4),
    stream: bytes.readUInt32LE(8),
    payload,
  };
}
