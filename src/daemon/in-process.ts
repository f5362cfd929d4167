/**
 * Puts the parts together for one call, inside the calling process. It is what a long-running daemon will do once for
 * many calls; until there is one, this is the only place that constructs.
 */

import { dockerBoxEngine } from '../engines/docker/box-engine.ts';
import { readEngineEnvironment } from '../engines/docker/config.ts';
import { findEngine } from '../engines/docker/discover.ts';
import { dockerImageEngine } from '../engines/docker/image-engine.ts';
import type { EngineConnection } from '../engines/docker/wire/connection.ts';
import { ownerId } from '../lib/owner.ts';
import type { Progress } from '../lib/progress.ts';
import { readPorterBinary } from '../porter/binary.ts';
import type { ExecResult } from '../porter/exec.ts';
import { type RunOnceRequest, type RunStreams, type RunTimings, runOnce } from '../sandboxes/run-once.ts';
import { readSetupEnvironment } from '../setup/config.ts';
import { makeImage } from '../setup/images.ts';
import { privateEnginePaths } from '../setup/private-engine/paths.ts';
import { readStateLocation } from './config.ts';

export type RunRequest = Omit<RunOnceRequest, 'image' | 'owner'> & { readonly image?: string };

export interface RunSurroundings {
  readonly progress: Progress;
  /** Asked before packages are installed on this machine to make the base image. */
  readonly consent: (packages: readonly string[]) => Promise<boolean>;
  /** Called when the image is there and nothing more is reported. */
  readonly prepared: () => void;
  readonly signal: AbortSignal;
}

export async function runInProcess(
  request: RunRequest,
  streams: RunStreams,
  surroundings: RunSurroundings,
): Promise<{ readonly result: ExecResult; readonly timings: RunTimings }> {
  const { signal } = surroundings;
  const { socket } = privateEnginePaths(readSetupEnvironment());
  const { connection } = await findEngine(readEngineEnvironment(), { privateSocket: socket, signal });
  const { uid, stateDir } = readStateLocation();
  const image = await provideImage(connection, request.image, surroundings);
  surroundings.prepared();
  const engine = dockerBoxEngine(connection, readPorterBinary);
  return await runOnce(engine, { ...request, image, owner: ownerId(uid, stateDir) }, streams, signal);
}

/** The image that was named, pulled on first use (C6), or else the base image, made on first use. */
async function provideImage(
  connection: EngineConnection,
  named: string | undefined,
  { progress, consent, signal }: RunSurroundings,
): Promise<string> {
  if (named === undefined) {
    return (await makeImage('base', connection, { progress, consent, signal })).reference;
  }
  const engine = dockerImageEngine(connection);
  if ((await engine.find(named, signal)) === undefined) {
    const reference = /:[^/]+$|@/.test(named) ? named : `${named}:latest`;
    await engine.pull(reference, { progress, signal });
  }
  return named;
}
