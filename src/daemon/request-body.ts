/** The JSON body of a request: bounded, of the right type, and what its route takes. */

import type { IncomingMessage } from 'node:http';
import type { z } from 'zod';
import { SallyportError } from '../protocol/errors.ts';
import { examine, problemLine } from '../protocol/parse-spec.ts';
import type { Problem } from '../protocol/problems.ts';

export const mostBodyBytes = 1_000_000;
const mostProblems = 5;

export async function readJson<B extends z.ZodType>(
  request: IncomingMessage,
  schema: B,
): Promise<z.output<B>> {
  const bytes = await readAll(request);
  // No body at all is an empty one: `curl -X POST` sends no type either.
  if (bytes.length > 0) requireType(request, 'application/json');
  return check(schema, bytes.length === 0 ? {} : parse(bytes));
}

export function requireType(request: IncomingMessage, expected: string): void {
  const given = request.headers['content-type'] ?? '';
  if (given.split(';', 1)[0]?.trim().toLowerCase() === expected) return;
  throw new SallyportError(
    'request_type',
    `the body is ${given === '' ? 'of no type' : JSON.stringify(given.slice(0, 100))}, and this route takes ${expected}`,
    { details: { expected }, advice: `Send it as \`content-type: ${expected}\`.` },
  );
}

async function readAll(request: IncomingMessage): Promise<Buffer> {
  if (Number(request.headers['content-length'] ?? 0) > mostBodyBytes) throw tooLarge();
  const chunks: Buffer[] = [];
  let bytes = 0;
  // Giving up early must not cut the connection: the refusal has to arrive. Node throws away what is left.
  for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > mostBodyBytes) throw tooLarge();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, bytes);
}

function tooLarge(): SallyportError {
  return new SallyportError('request_too_large', `the body is larger than ${mostBodyBytes} bytes`, {
    details: { limit_bytes: mostBodyBytes },
  });
}

function parse(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8')) as unknown;
  } catch (cause) {
    throw new SallyportError('request_invalid', 'the body is no valid JSON', {
      details: { field: 'body' },
      cause,
    });
  }
}

function check<B extends z.ZodType>(schema: B, value: unknown): z.output<B> {
  const { data, problems } = examine(schema, value);
  if (problems.length === 0) return data as z.output<B>;
  const shown = problems
    .slice(0, mostProblems)
    .map((problem): Problem => ({ ...problem, field: fieldOf(problem.path) }));
  const more = problems.length - shown.length;
  throw new SallyportError(
    'request_invalid',
    shown.map(problemLine).join('; ') + (more > 0 ? `; and ${more} more` : ''),
    { details: { field: shown[0]?.field ?? 'body', fields: shown.map(({ field }) => field) } },
  );
}

const fieldOf = (path: Problem['path']): string =>
  path.reduce<string>(
    (field, part) => (typeof part === 'number' ? `${field}[${part}]` : `${field}.${part.slice(0, 100)}`),
    'body',
  );
