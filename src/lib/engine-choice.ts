/** The engine that was chosen on this machine, in the state folder. Both ends of the API know the place. */

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const choiceFile = (stateDir: string): string => join(stateDir, 'engine');

/** Undefined: nobody has chosen. */
export function rememberedEngine(stateDir: string): string | undefined {
  try {
    return readFileSync(choiceFile(stateDir), 'utf8').trim();
  } catch {
    return undefined;
  }
}

export function rememberEngine(stateDir: string, engine: string): void {
  mkdirSync(stateDir, { recursive: true, mode: 0o700 });
  writeFileSync(choiceFile(stateDir), `${engine}\n`, { mode: 0o600 });
}
