/**
 * The folder in which the daemon of one engine keeps its state. The daemon that starts first claims the user's state folder itself;
 * one for another engine gets a folder below it. A claim lasts, except where the daemon fails before it has served anybody.
 */

import { readdirSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import {
  engineFolderPath,
  engineInFolder,
  forgetEngineFolder,
  readEngineFolder,
  writeEngineFolder,
} from '../lib/engine-folders.ts';
import type { EngineChoice } from '../protocol/engine-environment.ts';
import { SallyportError } from '../protocol/errors.ts';
import { takeLock } from '../store/instance-lock.ts';
import { provideStateFolder } from '../store/state-folder.ts';

export interface ReachedEngine {
  /** As a person would name it. */
  readonly endpoint: string;
  /** `EngineFacts` of `sandboxes/ports.ts`. */
  readonly id?: string;
}

export interface EngineHome {
  readonly path: string;
  /** Writes down the engine that was reached. Another one than before is refused while the folder holds sandboxes. */
  reached(engine: ReachedEngine): void;
  /** Undoes a claim of this start: no daemon of this engine ever served anybody here. */
  abandon(): void;
  release(): void;
}

export async function takeEngineHome(
  stateDir: string,
  { key, variables }: EngineChoice,
): Promise<EngineHome | { readonly heldBy: number; readonly path: string }> {
  provideStateFolder(stateDir);
  for (;;) {
    const path = engineFolderPath(stateDir, key);
    provideStateFolder(path);
    const lock = await takeLock(path);
    if ('heldBy' in lock) return { ...lock, path };
    // Another engine's daemon may have claimed the state folder before this one had its lock.
    if (engineFolderPath(stateDir, key) !== path) {
      lock.release();
      continue;
    }
    const before = readEngineFolder(path);
    writeEngineFolder({ ...before, path, key, variables });
    return {
      path,
      reached: ({ endpoint, id }) => {
        refuseAnother(path, key, { endpoint, ...(id === undefined ? {} : { id }) });
        const engineId = id === undefined ? {} : { engineId: id };
        writeEngineFolder({ path, key, variables, endpoint, ...engineId });
      },
      abandon: () => {
        if (before === undefined && isEmpty(join(path, 'sandboxes'))) forgetEngineFolder(path);
      },
      release: () => lock.release(),
    };
  }
}

/** Another engine does not know the sandboxes: to recover them there would take each for removed, and forget its container. */
function refuseAnother(path: string, key: string, now: ReachedEngine): void {
  const { endpoint, engineId, holdsSandboxes } = engineInFolder(path, key);
  if (!holdsSandboxes || endpoint === undefined) return;
  if (socketBehind(endpoint) === socketBehind(now.endpoint)) return;
  if (engineId !== undefined && engineId === now.id) return;
  throw new SallyportError(
    'daemon_engine_differs',
    `the sandboxes in ${path} belong to the engine ${endpoint}, and the one that answers is ${now.endpoint}`,
    {
      details: { stateDir: path, engine: endpoint, found: now.endpoint },
      advice: `Start the engine ${endpoint} to use its sandboxes, or name the other engine: \`DOCKER_HOST=${now.endpoint} sally ls\`.`,
    },
  );
}

/** One socket may have several names. */
function socketBehind(endpoint: string): string {
  if (!endpoint.startsWith('unix://')) return endpoint;
  try {
    return `unix://${realpathSync(endpoint.slice('unix://'.length))}`;
  } catch {
    return endpoint;
  }
}

function isEmpty(folder: string): boolean {
  try {
    return readdirSync(folder).length === 0;
  } catch {
    return true;
  }
}
