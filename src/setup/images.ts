/** Puts an engine and image making together, for those that may not know both. */

import { existsSync } from 'node:fs';
import { dockerBuildTurns } from '../engines/docker/build-turns.ts';
import { type EngineEnvironment, readEngineEnvironment } from '../engines/docker/config.ts';
import { findEngine } from '../engines/docker/discover.ts';
import { dockerImageEngine } from '../engines/docker/image-engine.ts';
import { engineInfo } from '../engines/docker/system/info.ts';
import type { EngineConnection } from '../engines/docker/wire/connection.ts';
import { EngineBoxImages } from '../images/box-images.ts';
import { type EnsuredImage, type EnsureImageOptions, ensureImage } from '../images/ensure-image.ts';
import type { ImageKind } from '../images/recipe.ts';
import { RegistryCredentials } from '../images/registry-credentials.ts';
import { processHolder } from '../store/process-identity.ts';
import { readSetupEnvironment } from './config.ts';
import { privateEnginePaths } from './private-engine/paths.ts';

export interface MadeImage extends EnsuredImage {
  readonly sizeBytes: number;
}

export async function makeImage(
  kind: ImageKind,
  connection: EngineConnection,
  options: Omit<EnsureImageOptions, 'engine' | 'engineDataRoot'>,
): Promise<MadeImage> {
  const engine = dockerImageEngine(connection);
  const dataRoot = await localDataRoot(connection);
  const made = await ensureImage(kind, {
    ...options,
    engine,
    ...(dataRoot === undefined ? {} : { engineDataRoot: dataRoot }),
  });
  const facts = await engine.find(made.id);
  return { ...made, sizeBytes: facts?.sizeBytes ?? 0 };
}

/** Images for sandboxes on this engine. */
export function dockerBoxImages(connection: EngineConnection): EngineBoxImages {
  return new EngineBoxImages(dockerImageEngine(connection));
}

/** In the engine that answers on this machine; none is started or installed for it. */
export async function makeImageHere(
  kind: ImageKind,
  options: Omit<EnsureImageOptions, 'engine' | 'engineDataRoot'>,
): Promise<MadeImage> {
  const environment = readEngineEnvironment();
  const { connection } = await findEngine(environment, {
    privateSocket: privateEnginePaths(readSetupEnvironment()).socket,
    ...(options.signal === undefined ? {} : { signal: options.signal }),
  });
  return await makeImage(kind, connection, { ...options, ...sharedMaking(connection, environment) });
}

/** What making an image needs where other processes use the same engine, and its registry may want to know who asks. */
export function sharedMaking(
  connection: EngineConnection,
  { dockerConfigDir }: Pick<EngineEnvironment, 'dockerConfigDir'>,
): Required<Pick<EnsureImageOptions, 'turns' | 'credentials'>> {
  return {
    turns: dockerBuildTurns(connection, processHolder()),
    credentials: new RegistryCredentials(dockerConfigDir),
  };
}

/** Only a unix socket says that the engine may be on this machine; a virtual machine's path does not exist here. */
export async function localDataRoot(connection: EngineConnection): Promise<string | undefined> {
  if (!connection.endpoint.startsWith('unix://')) return undefined;
  const { dataRoot } = await engineInfo(connection);
  return existsSync(dataRoot) ? dataRoot : undefined;
}
