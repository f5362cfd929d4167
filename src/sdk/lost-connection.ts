/** What a connection to the daemon that fails means to who wanted something. */

import { SallyportError } from '../protocol/errors.ts';
import { socketPathProblem } from '../protocol/socket-path.ts';

/** The daemon was not there at all: nothing was asked. */
export class NotThere extends Error {}

/** The last: it went away with the connection still in its queue, so nothing of it was ever read. */
const absence: ReadonlySet<string | undefined> = new Set(['ENOENT', 'ECONNREFUSED', 'ECONNRESET']);

/** It could not be made. Node.js 20 connects to the first bytes of a path that is too long; later releases refuse it. */
export function notReached(error: NodeJS.ErrnoException & { readonly address?: string }): Error {
  const problem = socketPathProblem(error.address ?? '');
  if (problem !== undefined) return problem;
  if (absence.has(error.code)) return new NotThere(error.message);
  return new SallyportError('daemon_unreachable', `the daemon's socket cannot be opened: ${error.message}`, {
    cause: error,
  });
}

/** It was there, and whether what was asked has been done is not known. */
export const connectionLost = (cause: unknown): SallyportError =>
  new SallyportError('daemon_gone', 'the connection to the daemon was lost', { cause });
