/** What the file system refused, as a typed error. */

import { SallyportError } from '../protocol/errors.ts';

const noSpace: ReadonlySet<string> = new Set(['ENOSPC', 'EDQUOT', 'EFBIG']);

export function errno(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}

export const isOutOfSpace = (error: unknown): boolean => noSpace.has(errno(error) ?? '');

export function stateFailure(what: string, path: string, cause: unknown): SallyportError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return isOutOfSpace(cause)
    ? new SallyportError('disk_full', `${what} failed: no space left for ${path}`, {
        advice: 'Free disk space where Sallyport keeps its state, then try again.',
        details: { path },
        cause,
      })
    : new SallyportError('state_failed', `${what} failed: ${reason}`, { details: { path }, cause });
}
