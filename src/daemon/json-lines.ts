/**
 * A body of JSON lines: for lists that are too long for one document. Each line is bounded and checked by itself, and what is
 * wrong is told by its line.
 */

import type { Readable } from 'node:stream';
import type { z } from 'zod';
import { SallyportError } from '../protocol/errors.ts';
import { checkBody } from './request-body.ts';

const mostLineBytes = 64 * 1024;

export async function* readJsonLines<T extends z.ZodType>(
  body: Readable,
  schema: T,
): AsyncGenerator<readonly z.output<T>[]> {
  let number = 0;
  const read = (line: Buffer): z.output<T> => checkBody(schema, parse(line, ++number));
  let rest: Buffer = Buffer.alloc(0);
  // Giving up early must not cut the connection: the refusal has to arrive.
  for await (const chunk of body.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    const values: z.output<T>[] = [];
    let from = 0;
    for (let end = bytes.indexOf(10); end !== -1; end = bytes.indexOf(10, from)) {
      values.push(read(bytes.subarray(from, end)));
      from = end + 1;
    }
    rest = bytes.subarray(from);
    if (rest.length > mostLineBytes) throw invalid(`line ${number + 1} of the body is too long`);
    yield values;
  }
  if (rest.length > 0) yield [read(rest)];
}

function parse(line: Buffer, number: number): unknown {
  try {
    return JSON.parse(line.toString('utf8')) as unknown;
  } catch (cause) {
    throw invalid(`line ${number} of the body is no valid JSON`, cause);
  }
}

const invalid = (message: string, cause?: unknown): SallyportError =>
  new SallyportError('request_invalid', message, { details: { field: 'body' }, cause });
