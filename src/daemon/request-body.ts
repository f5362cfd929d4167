/** The JSON body of a request: bounded, of the right type, and what its route takes. */

import type { IncomingMessage } from 'node:http';
import type { z } from 'zod';
import { SallyportError } from '../protocol/errors.ts';

export const mostBodyBytes = 1_000_000;
const mostIssues = 5;

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
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const problems = result.error.issues.slice(0, mostIssues).map(describeIssue);
  const more = result.error.issues.length - problems.length;
  const [first] = problems;
  throw new SallyportError(
    'request_invalid',
    problems.map(({ field, reason }) => `${field} ${reason}`).join('; ') +
      (more > 0 ? `; and ${more} more` : ''),
    { details: { field: first?.field ?? 'body', fields: problems.map(({ field }) => field) } },
  );
}

function describeIssue(issue: z.core.$ZodIssue): { readonly field: string; readonly reason: string } {
  const field = issue.path.reduce<string>(
    (path, part) => (typeof part === 'number' ? `${path}[${part}]` : `${path}.${String(part).slice(0, 100)}`),
    'body',
  );
  if (issue.code !== 'unrecognized_keys') return { field, reason: wording(issue.message) };
  const [key = ''] = issue.keys;
  const others = issue.keys.length - 1;
  return {
    field: `${field}.${key.slice(0, 100)}`,
    reason: `is not known${others > 0 ? `, nor are ${others} other keys beside it` : ''}`,
  };
}

/** Our own messages go on from the field's name; zod's begin a sentence. */
const wording = (message: string): string => (/^[A-Z]/.test(message) ? `is wrong: ${message}` : message);
