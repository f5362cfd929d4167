/**
 * Puts the parts together for one call, inside the calling process. It is what a long-running daemon will do once for
 * many calls; until there is one, this is the only place that constructs.
 */

import { dockerBoxEngine } from '../engines/docker/box-engine.ts';
import { readEngineEnvironment } from '../engines/docker/config.ts';
import { findEngine } from '../engines/docker/discover.ts';
import { dockerImageEngine } from '../engines/docker/image-engine.ts';
import type { EngineConnection } from '../engines/docker/wire/connection.ts';
import { defaultImageReference } from '../images/ensure-image.ts';
import { ownerId } from '../lib/owner.ts';
import { readPorterBinary } from '../porter/binary.ts';
import type { Exec, ExecResult } from '../porter/exec.ts';
import { type RunOnceRequest, type RunTimings, runOnce } from '../sandboxes/run-once.ts';
import { readSetupEnvironment } from '../setup/config.ts';
import { privateEnginePaths } from '../setup/private-engine/paths.ts';
import { readStateLocation } from './config.ts';

export type RunRequest = Omit<RunOnceRequest, 'image' | 'owner'> & { readonly image?: string };

export async function runInProcess(
  request: RunRequest,
  use: (exec: Exec) => Promise<void>,
  signal?: AbortSignal,
): Promise<{ readonly result: ExecResult; readonly timings: RunTimings }> {
  const { socket } = privateEnginePaths(readSetupEnvironment());
  const { connection } = await findEngine(readEngineEnvironment(), {
    privateSocket: socket,
    ...(signal === undefined ? {} : { signal }),
  });
  const { uid, stateDir } = readStateLocation();
  const image = request.image ?? (await defaultImage(connection));
  const engine = dockerBoxEngine(connection, readPorterBinary);
  return await runOnce(engine, { ...request, image, owner: ownerId(uid, stateDir) }, use, signal);
}

async function defaultImage(connection: EngineConnection): Promise<string> {
  return await defaultImageReference('base', dockerImageEngine(connection));
}
