/** How long the path of a Unix socket may be. */

import { SallyportError } from './errors.ts';

/** The system's limit without the final NUL: 108 on Linux, 104 elsewhere. */
const mostSocketPathBytes = process.platform === 'linux' ? 107 : 103;

/** Undefined: the system takes this path. */
export function socketPathProblem(path: string): SallyportError | undefined {
  const bytes = Buffer.byteLength(path);
  if (bytes <= mostSocketPathBytes) return undefined;
  return new SallyportError(
    'socket_path_too_long',
    `the socket's path ${path} has ${bytes} bytes; the system allows ${mostSocketPathBytes}`,
    { details: { path, bytes, limit_bytes: mostSocketPathBytes } },
  );
}
