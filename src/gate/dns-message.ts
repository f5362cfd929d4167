/** DNS messages as far as the gate needs them: one question in, one answer out. Nothing of a question is ever passed on. */

import { parseAddress } from '../policy/egress/address.ts';
import { addressBytes } from './dial.ts';

export interface Question {
  readonly id: number;
  readonly recursion: boolean;
  /** Labels joined by dots, as they came. Undefined where a label has a dot or a byte beyond ASCII. */
  readonly name: string | undefined;
  readonly type: number;
  readonly isInternet: boolean;
  /** As it came, for the answer. */
  readonly bytes: Buffer;
}

export const questionType = { a: 1, aaaa: 28, any: 255 } as const;
export const answerCode = {
  ok: 0,
  format: 1,
  failed: 2,
  unknownName: 3,
  notImplemented: 4,
  refused: 5,
} as const;

const headerBytes = 12;
/** Short: an address stands for its name only as long as somebody listens there. */
const lifetimeSeconds = 10;

/** A number: the code to answer with, because it is no question that is answered here. */
export function readQuestion(message: Buffer): Question | number | undefined {
  if (message.length < headerBytes) return undefined;
  const flags = message.readUInt16BE(2);
  if ((flags & 0x8000) !== 0) return undefined;
  if ((flags & 0x7800) !== 0) return answerCode.notImplemented;
  if (message.readUInt16BE(4) !== 1 || message.readUInt16BE(6) !== 0) return answerCode.format;
  const labels: string[] = [];
  let isPlain = true;
  let at = headerBytes;
  for (;;) {
    const length = message[at];
    if (length === undefined || length > 63) return answerCode.format;
    at++;
    if (length === 0) break;
    if (at + length > message.length || at - headerBytes > 255) return answerCode.format;
    const label = message.subarray(at, at + length).toString('latin1');
    isPlain &&= /^[\x21-\x2d\x2f-\x7e]+$/.test(label);
    labels.push(label);
    at += length;
  }
  if (at + 4 > message.length) return answerCode.format;
  return {
    id: message.readUInt16BE(0),
    recursion: (flags & 0x0100) !== 0,
    name: isPlain ? labels.join('.') : undefined,
    type: message.readUInt16BE(at),
    isInternet: message.readUInt16BE(at + 2) === 1,
    bytes: message.subarray(headerBytes, at + 4),
  };
}

export function writeAnswer(question: Question, code: number, address?: string): Buffer {
  const record = address === undefined ? Buffer.alloc(0) : addressRecord(address);
  const header = Buffer.alloc(headerBytes);
  header.writeUInt16BE(question.id, 0);
  // An answer of the one who knows, with recursion available.
  header.writeUInt16BE(0x8480 | (question.recursion ? 0x0100 : 0) | code, 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(record.length === 0 ? 0 : 1, 6);
  return Buffer.concat([header, question.bytes, record]);
}

/** To what cannot be read: the header alone. */
export function writeRefusal(message: Buffer, code: number): Buffer {
  const header = Buffer.alloc(headerBytes);
  message.copy(header, 0, 0, 2);
  header.writeUInt16BE(0x8080 | code, 2);
  return header;
}

function addressRecord(text: string): Buffer {
  const address = parseAddress(text);
  if (address === undefined) throw new RangeError(`${text} is no address`);
  const data = addressBytes(address);
  const head = Buffer.alloc(12);
  // The name of the question, by a pointer to it.
  head.writeUInt16BE(0xc000 | headerBytes, 0);
  head.writeUInt16BE(address.family === 4 ? questionType.a : questionType.aaaa, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt32BE(lifetimeSeconds, 6);
  head.writeUInt16BE(data.length, 10);
  return Buffer.concat([head, data]);
}
