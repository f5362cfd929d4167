/** One table from the kind of an error to the exit code (R10). Verbs that run a command use `passThrough`. */

import { type ErrorCode, isSallyportError } from '../protocol/errors.ts';

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

/** What was asked for is wrong, wherever that was found out: here, in a file, or by the daemon before it made anything. */
const usageErrors: ReadonlySet<ErrorCode> = new Set([
  'usage',
  'refused_by_policy',
  'secret_invalid',
  'request_invalid',
  'spec_invalid',
  'config_invalid',
  'project_not_approved',
  'dockerfile_invalid',
  'egress_rule_invalid',
]);

export function exitCodeFor(error: unknown, verb: 'plain' | 'passThrough'): number {
  if (isSallyportError(error) && usageErrors.has(error.code)) return exitCode.usage;
  if (isSallyportError(error, 'cancelled')) return exitCode.interrupted;
  return verb === 'plain' ? exitCode.failed : exitCode.sallyportFailed;
}
