/** The JSON body of a request: bounded, of the right type, and what its route takes. */

import type { z } from 'zod';
import { SallyportError } from '../protocol/errors.ts';
import { examine, problemLine } from '../protocol/parse-spec.ts';
import type { Problem } from '../protocol/problems.ts';
import type { Asked } from './router.ts';

export const mostBodyBytes = 1_000_000;
const mostIssues = 5;
const longestPart = 100;

export async function readJson<B extends z.ZodType>(request: Asked, schema: B): Promise<z.output<B>> {
  const bytes = await readAll(request);
  // No body at all is an empty one: `curl -X POST` sends no type either.
  if (bytes.length > 0) requireType(request, 'application/json');
  return checkBody(schema, bytes.length === 0 ? {} : parse(bytes));
}

export function requireType(request: Pick<Asked, 'headers'>, expected: string): void {
  const given = request.headers['content-type'] ?? '';
  if (given.split(';', 1)[0]?.trim().toLowerCase() === expected) return;
  throw new SallyportError(
    'request_type',
    `the body is ${given === '' ? 'of no type' : JSON.stringify(given.slice(0, 100))}, and this route takes ${expected}`,
    { details: { expected }, advice: `Send it as \`content-type: ${expected}\`.` },
  );
}

async function readAll(request: Asked): Promise<Buffer> {
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

/** What does not fit is told by its place in the body. */
export function checkBody<B extends z.ZodType>(schema: B, value: unknown): z.output<B> {
  const { data, problems } = examine(schema, value);
  if (problems.length === 0) return data as z.output<B>;
  const shown = problems.slice(0, mostIssues);
  const more = problems.length - shown.length;
  const words = shown.map((problem) => problemLine({ ...problem, field: nameOf(problem) }));
  const fields = shown.map(fieldOf);
  throw new SallyportError('request_invalid', words.join('; ') + (more > 0 ? `; and ${more} more` : ''), {
    details: { field: fields[0] ?? 'body', fields },
    ...(shown.every(({ path }) => path[0] === 'spec') ? { advice: specAdvice } : {}),
  });
}

const specAdvice = 'Correct that; docs/spec.md describes every field, and --help the flags.';

/** Where it is in the body. */
const fieldOf = ({ path }: Problem): string =>
  path.reduce<string>(
    (before, part) =>
      typeof part === 'number' ? `${before}[${part}]` : `${before}.${part.slice(0, longestPart)}`,
    'body',
  );

/** What its author calls it: a field of a spec is one wherever it was written. */
function nameOf(problem: Problem): string {
  const { path } = problem;
  return path[0] === 'spec' && path.length > 1
    ? fieldOf({ ...problem, path: path.slice(1) }).slice('body.'.length)
    : fieldOf(problem);
}
