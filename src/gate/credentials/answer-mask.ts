/**
 * Answers of a server that may know a secret: every part that reaches the sandbox is masked. An answer that cannot be
 * searched (unknown compression, a part of a document, a character set that is not a superset of ASCII) is refused.
 */

import type { AnswerMask, MaskedBody } from '../http/credential-port.ts';
import type { Framing } from '../http/framing.ts';
import type { ResponseHead } from '../http/head.ts';
import { Headers } from '../http/headers.ts';
import type { MessageRoom } from '../http/message-room.ts';
import { HttpViolation } from '../http/violation.ts';
import { changedMessages } from '../http/web-socket-messages.ts';
import { type Boundary, type LiveAutomaton, Masker, masked, maskInTurns, maskText } from './masked-stream.ts';
import { canUnpack, unpacked } from './unpack-answer.ts';

/** Fields that ask for a part of a document, or for one in a form that cannot be searched. */
const unwantedFields: ReadonlySet<string> = new Set([
  'range',
  'if-range',
  'request-range',
  'a-im',
  'accept-charset',
  'sec-websocket-extensions',
]);

/** Before a request goes to a server whose answers are masked. */
export const withPlainAnswer = (headers: Headers): Headers =>
  headers.without(unwantedFields).with('Accept-Encoding', 'identity');

export class MaskedAnswers implements AnswerMask {
  readonly #live: LiveAutomaton;

  constructor(live: LiveAutomaton) {
    this.#live = live;
  }

  head(head: ResponseHead): ResponseHead {
    const mask = (text: string): string => maskText(text, this.#live.current);
    const fields = head.headers.fields.map(([name, value]) => [mask(name), mask(value)] as const);
    return { ...head, reason: mask(head.reason), headers: new Headers(fields) };
  }

  body({ status }: ResponseHead, headers: Headers, framing: Framing): MaskedBody {
    // No request asks for a part: a server that sends one all the same could cut a value in two.
    if (status === 206 || status === 226) throw unreadable('is a part of a document');
    if (framing.kind === 'none') return { headers, framing, pieces: undefined };
    const type = headers.get('content-type') ?? '';
    if (!headers.all('content-type').every(isSupersetOfAscii)) {
      throw unreadable('has a character set that is not a superset of ASCII');
    }
    const coding = headers.tokens('content-encoding').filter((one) => one !== 'identity');
    const masker = (): Masker => new Masker(this.#live, boundaryOf(type));
    const [only] = coding;
    if (only === undefined) {
      return { headers, framing, pieces: (body, pauses) => masked(body, masker(), pauses) };
    }
    if (coding.length > 1 || !canUnpack(only)) throw unreadable('is compressed in an unknown way');
    return {
      headers: headers.without(new Set(['content-encoding'])),
      framing: { kind: 'chunked' },
      pieces: (body, pauses) => masked(unpacked(body, only), masker(), pauses),
    };
  }

  webSocket(
    { headers }: ResponseHead,
    bytes: AsyncIterable<Buffer>,
    room: MessageRoom,
  ): AsyncIterable<Buffer> {
    if (headers.has('sec-websocket-extensions')) throw unreadable('uses a WebSocket extension');
    return changedMessages(bytes, (payload) => maskInTurns(payload, this.#live), room);
  }
}

const knownCharset =
  /^(utf-?8(mb4)?|(us-)?ascii|iso[-_]?8859-\d{1,2}|latin-?\d|windows-\d+|cp125\d|koi8-[ru]|gbk|gb2312|gb18030|big5|euc-(jp|kr)|shift[-_]jis|binary|none)?$/i;

/** A type may have several, and readers differ in which one counts. */
function isSupersetOfAscii(type: string): boolean {
  return [...type.matchAll(/charset([^=;,]*)=\s*["']?([^"';,\s]*)/gi)].every(
    ([, extension = '', name = '']) => extension.trim() === '' && knownCharset.test(name),
  );
}

const unreadable = (why: string): HttpViolation =>
  new HttpViolation('bad_response', `the answer ${why}, so it cannot be searched for secrets`);

function boundaryOf(type: string): Boundary {
  if (/^text\/event-stream\b/i.test(type)) return 'event';
  return /^application\/(?:[\w.-]+\+)?(?:x-)?(?:ndjson|jsonl|jsonlines|json-lines|json-seq|stream\+json)\b/i.test(
    type,
  )
    ? 'line'
    : 'none';
}
