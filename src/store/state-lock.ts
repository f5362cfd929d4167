/** Locks on files of the state folder that several processes write (`lib/file-lock.ts`), with typed errors. */

import { FileLockError, withFileLock, withFileLockSync } from '../lib/file-lock.ts';
import { SallyportError } from '../protocol/errors.ts';
import { stateFailure } from './state-failure.ts';

/** Blocks this process while another one holds the lock, for a second at most. Not re-entrant. */
export function withStateLockSync<T>(path: string, action: () => T, limitMs?: number): T {
  try {
    return withFileLockSync(path, action, limitMs);
  } catch (error) {
    throw typed(error);
  }
}

/** Waits for ten seconds at most. Not re-entrant. */
export async function withStateLock<T>(path: string, action: () => Promise<T>, limitMs?: number): Promise<T> {
  try {
    return await withFileLock(path, action, limitMs);
  } catch (error) {
    throw typed(error);
  }
}

function typed(error: unknown): unknown {
  if (!(error instanceof FileLockError)) return error;
  const { path, pid, message } = error;
  if (pid === undefined) return stateFailure('taking a lock', path, error.cause ?? error);
  return new SallyportError('state_failed', message, {
    details: { path, pid },
    advice: `Check whether process ${pid} hangs (\`ps -p ${pid}\`), then try again.`,
    cause: error,
  });
}
