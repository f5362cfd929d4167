/**
 * Puts the parts together for one call, inside the calling process. It is what a long-running daemon will do once for
 * many calls; until there is one, this is the only place that constructs.
 */

import { boxBody } from '../engines/docker/box-body.ts';
import { dockerBoxEngine } from '../engines/docker/box-engine.ts';
import { readEngineEnvironment } from '../engines/docker/config.ts';
import { findEngine } from '../engines/docker/discover.ts';
import { dockerRunLine } from '../engines/docker/docker-run-line.ts';
import { dockerImageEngine } from '../engines/docker/image-engine.ts';
import { porterVolumeName } from '../engines/docker/porter-volume.ts';
import { engineInfo } from '../engines/docker/system/info.ts';
import type { EngineConnection } from '../engines/docker/wire/connection.ts';
import { defaultImageReference } from '../images/ensure-image.ts';
import { ownerId } from '../lib/owner.ts';
import type { Progress } from '../lib/progress.ts';
import { readPorterBinary } from '../porter/binary.ts';
import type { ExecResult } from '../porter/exec.ts';
import { SallyportError } from '../protocol/errors.ts';
import {
  type RunOnceRequest,
  type RunStreams,
  type RunTimings,
  runBox,
  runOnce,
} from '../sandboxes/run-once.ts';
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
  if (request.runtime !== undefined) await requireRuntime(connection, request.runtime, signal);
  const { uid, stateDir } = readStateLocation();
  const image = await provideImage(connection, request.image, surroundings);
  surroundings.prepared();
  const engine = dockerBoxEngine(connection, readPorterBinary);
  return await runOnce(engine, { ...request, image, owner: ownerId(uid, stateDir) }, streams, signal);
}

/** Asked before anything is made: a box that fell back to another runtime would have another isolation. */
async function requireRuntime(
  connection: EngineConnection,
  runtime: string,
  signal: AbortSignal,
): Promise<void> {
  const { runtimes } = await engineInfo(connection, { signal });
  if (runtimes.includes(runtime)) return;
  throw new SallyportError('runtime_missing', `the engine has no runtime ${JSON.stringify(runtime)}`, {
    details: { runtime, available: runtimes },
    advice: `It has ${runtimes.join(', ')}; \`sally doctor\` says more.`,
  });
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

/** What a run would ask of an engine on a machine like this one, without asking any. */
export async function explainRun(
  request: RunRequest,
): Promise<{ readonly body: unknown; readonly line: string }> {
  const { uid, stateDir } = readStateLocation();
  const architecture = process.arch === 'arm64' ? 'arm64' : 'amd64';
  const image = request.image ?? (await defaultImageReference('base', architecture));
  const { hash } = await readPorterBinary(architecture);
  const box = runBox({ ...request, image, owner: ownerId(uid, stateDir) }, porterVolumeName(hash));
  const body = boxBody(box);
  return { body, line: dockerRunLine(box.name, body) };
}
