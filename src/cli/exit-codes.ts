/** One table from the kind of an error to the exit code (R10). Verbs that run a command use `passThrough`. */

import { isSallyportError } from '../protocol/errors.ts';

export const exitCode = {
  ok: 0,
  failed: 1,
  usage: 2,
  timeout: 124,
  sallyportFailed: 125,
  notExecutable: 126,
  notFound: 127,
  interrupted: 130,
  terminated: 143,
} as const;

export function exitCodeFor(error: unknown, verb: 'plain' | 'passThrough'): number {
  if (isSallyportError(error, 'usage') || isSallyportError(error, 'refused_by_policy')) return exitCode.usage;
  if (isSallyportError(error, 'cancelled')) return exitCode.interrupted;
  return verb === 'plain' ? exitCode.failed : exitCode.sallyportFailed;
}
