/** The engine's progress and event streams: one JSON object after another, read only as fast as they are consumed. */

import type { Readable } from 'node:stream';
import { SallyportError } from '../../../protocol/errors.ts';

const maxLineBytes = 4 * 2 ** 20;

export async function* jsonLines<T>(stream: Readable): AsyncGenerator<T> {
  let pending: Buffer[] = [];
  let pendingBytes = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    let start = 0;
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, start)) {
      pending.push(chunk.subarray(start, end));
      const value = parse<T>(Buffer.concat(pending));
      pending = [];
      pendingBytes = 0;
      start = end + 1;
      if (value !== undefined) yield value;
    }
    pendingBytes += chunk.length - start;
    if (pendingBytes > maxLineBytes) {
      throw new SallyportError(
        'engine_protocol',
        `the engine sent a line of more than ${maxLineBytes} bytes`,
      );
    }
    if (start < chunk.length) pending.push(chunk.subarray(start));
  }
  const last = parse<T>(Buffer.concat(pending));
  if (last !== undefined) yield last;
}

function parse<T>(line: Buffer): T | undefined {
  const text = line.toString('utf8').trim();
  if (text === '') return undefined;
  try {
    return JSON.parse(text) as T;
  } catch (cause) {
    throw new SallyportError('engine_protocol', 'the engine sent a line that is not JSON', { cause });
  }
}
