/** What a connection to the daemon that fails means to who wanted something. */

import { SallyportError } from '../protocol/errors.ts';

/** The daemon was not there at all: nothing was asked. */
export class NotThere extends Error {}

/** The last: it went away with the connection still in its queue, so nothing of it was ever read. */
const absence: ReadonlySet<string | undefined> = new Set(['ENOENT', 'ECONNREFUSED', 'ECONNRESET']);

/** It could not be made. */
export function notReached(error: NodeJS.ErrnoException): Error {
  if (absence.has(error.code)) return new NotThere(error.message);
  return new SallyportError('daemon_unreachable', `the daemon's socket cannot be opened: ${error.message}`, {
    cause: error,
  });
}

/** It was there, and whether what was asked has been done is not known. */
export const connectionLost = (cause: unknown): SallyportError =>
  new SallyportError('daemon_gone', 'the connection to the daemon was lost', { cause });
