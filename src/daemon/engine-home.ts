/**
 * The folder in which the daemon of one engine keeps its state. The daemon that starts first claims the user's state folder itself;
 * one for another engine gets a folder below it. A claim lasts, except where the daemon fails before it has served anybody.
 */

import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import {
  engineFolderPath,
  forgetEngineFolder,
  readEngineFolder,
  writeEngineFolder,
} from '../lib/engine-folders.ts';
import type { EngineChoice } from '../protocol/engine-environment.ts';
import { takeLock } from '../store/instance-lock.ts';
import { provideStateFolder } from '../store/state-folder.ts';

export interface EngineHome {
  readonly path: string;
  /** Writes down the engine that was reached. */
  reached(endpoint: string): void;
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
      reached: (endpoint) => writeEngineFolder({ path, key, variables, endpoint }),
      abandon: () => {
        if (before === undefined && isEmpty(join(path, 'sandboxes'))) forgetEngineFolder(path);
      },
      release: () => lock.release(),
    };
  }
}

function isEmpty(folder: string): boolean {
  try {
    return readdirSync(folder).length === 0;
  } catch {
    return true;
  }
}
