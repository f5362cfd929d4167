/**
 * From anything to a spec, or to one error that says everything that is wrong with it. It must stay fast on hostile input
 * (a hundred thousand keys, deep nesting, a cycle), and never repeats the value of an environment variable.
 */

import type { z } from 'zod';
import { SallyportError } from './errors.ts';
import { type Problem, problemsOf, tooLarge } from './problems.ts';
import { type Spec, specSchema } from './spec.ts';

const mostShown = 10;

export function parseSpec(value: unknown): Spec {
  return parseBody(specSchema, value, 'the spec');
}

/** The same for any schema of the API: `what` begins the message, as in "the spec". */
export function parseBody<T extends z.ZodType>(schema: T, value: unknown, what: string): z.output<T> {
  const { data, problems } = examine(schema, value);
  if (problems.length > 0) throw specInvalid(what, problems);
  return data as z.output<T>;
}

export function examine<T extends z.ZodType>(
  schema: T,
  value: unknown,
): { readonly data?: z.output<T>; readonly problems: readonly Problem[] } {
  // Before the schema looks at it: each of its findings costs far more than a count.
  const large = tooLarge(value);
  if (large !== undefined) return { problems: [large] };
  const result = schema.safeParse(value);
  return result.success
    ? { data: result.data, problems: [] }
    : { problems: problemsOf(schema, value, result.error.issues) };
}

export function specInvalid(what: string, problems: readonly Problem[]): SallyportError {
  const lines = problems.slice(0, mostShown).map(problemLine);
  const more = problems.length - lines.length;
  if (more > 0) lines.push(`and ${more} more`);
  const message =
    lines.length === 1
      ? `${what} cannot be used: ${lines[0]}`
      : `${what} cannot be used:\n  ${lines.join('\n  ')}`;
  return new SallyportError('spec_invalid', message, {
    details: { fields: problems.slice(0, mostShown).map(({ field }) => field), problems: lines },
  });
}

export function problemLine({ field, shown, reason }: Problem): string {
  return `${field === '' ? 'it' : field}${shown === undefined ? '' : ` (${shown})`} ${reason}`;
}
