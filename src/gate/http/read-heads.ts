/** Heads from a stream: whole, within their size, within their time, and refused as soon as they cannot be right any more. */

import type { ByteReader } from './byte-reader.ts';
import {
  mostHeadBytes,
  parseRequestHead,
  parseResponseHead,
  type RequestHead,
  type ResponseHead,
} from './head.ts';
import { HttpViolation } from './violation.ts';

const tooLarge = (): HttpViolation =>
  new HttpViolation('head_too_large', `the head is larger than ${mostHeadBytes} bytes`);

/** The time counts from the first byte on; before it the connection may rest for as long as its owner likes. */
export async function readRequestHead(reader: ByteReader, headMs: number): Promise<RequestHead | undefined> {
  if (!(await reader.ready())) return undefined;
  let timer: NodeJS.Timeout | undefined;
  const expired = new Promise<never>((_resolve, reject) => {
    const tooSlow = (): void =>
      reject(new HttpViolation('head_too_slow', `no whole head within ${headMs} ms`));
    timer = setTimeout(tooSlow, headMs);
  });
  const whole = reader.until('\r\n\r\n', mostHeadBytes, tooLarge, refuseBareLines);
  // Whichever loses the race has no other reader.
  whole.catch(() => {});
  try {
    const bytes = await Promise.race([whole, expired]);
    return bytes === undefined ? undefined : parseRequestHead(bytes);
  } finally {
    clearTimeout(timer);
  }
}

/** Without this a head with bare LF would never end, and its sender would wait for the deadline. */
function refuseBareLines(bytes: Buffer): void {
  for (let at = bytes.indexOf(10); at >= 0; at = bytes.indexOf(10, at + 1)) {
    if (at === 0 || bytes[at - 1] !== 13) throw new HttpViolation('bad_request', 'a line ends with LF alone');
  }
}

export async function readResponseHead(reader: ByteReader): Promise<ResponseHead | undefined> {
  const bytes = await reader.until('\r\n\r\n', mostHeadBytes, tooLarge);
  return bytes === undefined ? undefined : parseResponseHead(bytes);
}
