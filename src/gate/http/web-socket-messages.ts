/**
 * What a server says on a WebSocket (RFC 6455), message by message. A message is collected whole, also where it comes in
 * fragments, handed to `changed`, which keeps its length, and sent on in one frame. Extensions are not understood.
 */

import type { MessageRoom } from './message-room.ts';
import { HttpViolation } from './violation.ts';

const mostMessageBytes = 16 * 2 ** 20;
const opcodes = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;
const known: ReadonlySet<number> = new Set(Object.values(opcodes));

interface Frame {
  readonly isFinal: boolean;
  readonly opcode: number;
  readonly payload: Buffer;
}

export async function* changedMessages(
  bytes: AsyncIterable<Buffer>,
  changed: (payload: Buffer) => Buffer | Promise<Buffer>,
  room: MessageRoom,
): AsyncGenerator<Buffer> {
  const taken = { bytes: 0 };
  try {
    yield* changedFrames(bytes, changed, (now) => {
      room.give(taken.bytes);
      taken.bytes = 0;
      room.take(now);
      taken.bytes = now;
    });
  } finally {
    room.give(taken.bytes);
  }
}

/** `collects` is called with how many bytes are kept until a message is complete. */
async function* changedFrames(
  bytes: AsyncIterable<Buffer>,
  changed: (payload: Buffer) => Buffer | Promise<Buffer>,
  collects: (bytes: number) => void,
): AsyncGenerator<Buffer> {
  let opcode: number | undefined;
  let fragments: Buffer[] = [];
  let collected = 0;
  for await (const frame of framesOf(bytes, (there) => collects(collected + there))) {
    if (frame.opcode >= opcodes.close) {
      // These may come between the fragments of a message.
      yield frameOf(frame.opcode, await changed(frame.payload));
      continue;
    }
    if ((frame.opcode === opcodes.continuation) !== (opcode !== undefined)) throw malformed();
    opcode ??= frame.opcode;
    fragments.push(frame.payload);
    collected += frame.payload.length;
    if (collected > mostMessageBytes) throw malformed();
    if (!frame.isFinal) continue;
    yield frameOf(opcode, await changed(Buffer.concat(fragments)));
    opcode = undefined;
    fragments = [];
    collected = 0;
  }
}

async function* framesOf(
  bytes: AsyncIterable<Buffer>,
  collects: (bytes: number) => void,
): AsyncGenerator<Frame> {
  const parts: Buffer[] = [];
  let there = 0;
  let needed = 2;
  for await (const piece of bytes) {
    parts.push(piece);
    there += piece.length;
    collects(there);
    // Joined only when enough is there, so that a large frame in small pieces costs no more than its length.
    while (there >= needed) {
      const joined = Buffer.concat(parts.splice(0));
      const size = frameSize(joined);
      needed = size.whole;
      if (joined.length < needed) {
        parts.push(joined);
        break;
      }
      yield frameIn(joined, size);
      const rest = joined.subarray(needed);
      parts.push(rest);
      there = rest.length;
      needed = 2;
    }
  }
}

interface FrameSize {
  readonly head: number;
  /** Of the whole frame, or of its head while that is not there. */
  readonly whole: number;
}

function frameSize(data: Buffer): FrameSize {
  const [first = 0, second = 0] = data;
  const isControl = (first & 15) >= opcodes.close;
  const short = second & 127;
  // No extension was asked for, and a server does not mask.
  if ((first & 0x70) !== 0 || (second & 0x80) !== 0 || !known.has(first & 15)) throw malformed();
  if (isControl && (short > 125 || (first & 0x80) === 0)) throw malformed();
  const head = short === 126 ? 4 : short === 127 ? 10 : 2;
  if (data.length < head) return { head, whole: head };
  const long = short === 126 ? data.readUInt16BE(2) : Number(short === 127 ? data.readBigUInt64BE(2) : short);
  if (long > mostMessageBytes) throw malformed();
  return { head, whole: head + long };
}

const frameIn = (data: Buffer, { head, whole }: FrameSize): Frame => ({
  isFinal: ((data[0] ?? 0) & 0x80) !== 0,
  opcode: (data[0] ?? 0) & 15,
  payload: data.subarray(head, whole),
});

function frameOf(opcode: number, payload: Buffer): Buffer {
  const { length } = payload;
  const head = Buffer.alloc(length < 126 ? 2 : length < 65_536 ? 4 : 10);
  head[0] = 0x80 | opcode;
  head[1] = length < 126 ? length : length < 65_536 ? 126 : 127;
  if (head.length === 4) head.writeUInt16BE(length, 2);
  if (head.length === 10) head.writeBigUInt64BE(BigInt(length), 2);
  return Buffer.concat([head, payload]);
}

const malformed = (): HttpViolation =>
  new HttpViolation('bad_response', 'the server sent a WebSocket frame that cannot be searched for secrets');
