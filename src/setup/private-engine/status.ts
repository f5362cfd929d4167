/** Whether the private engine runs, seen from its process and from its socket. */

import { connect } from '../../engines/docker/connect.ts';
import { isSallyportError } from '../../protocol/errors.ts';
import { findDaemon } from './owned-processes.ts';
import type { PrivateEnginePaths } from './paths.ts';

export interface PrivateEngineStatus {
  /** `silent`: the process is there and its socket does not answer (it starts, ends, or is stuck). */
  readonly state: 'running' | 'silent' | 'forbidden' | 'stopped';
  readonly pid?: number;
  readonly socket: string;
  readonly dataRoot: string;
  readonly logFile: string;
}

export async function privateEngineStatus(
  paths: PrivateEnginePaths,
  options: { readonly signal?: AbortSignal } = {},
): Promise<PrivateEngineStatus> {
  const { socket, dataRoot, logFile } = paths;
  const daemon = await findDaemon(paths);
  const places = { socket, dataRoot, logFile };
  if (daemon === undefined) return { state: 'stopped', ...places };
  const state = await askSocket(socket, options.signal);
  return { state, pid: daemon.pid, ...places };
}

async function askSocket(
  socket: string,
  signal: AbortSignal | undefined,
): Promise<'running' | 'silent' | 'forbidden'> {
  try {
    await connect({ kind: 'unix', path: socket }, signal === undefined ? {} : { signal });
    return 'running';
  } catch (error) {
    if (!isSallyportError(error) || error.code === 'cancelled') throw error;
    return error.code === 'engine_permission_denied' ? 'forbidden' : 'silent';
  }
}
