/** Remembers that a user was told something, so that it is said once. */

import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';

/** True for the first caller of a name in a state folder. Where that cannot be written down it is said again. */
export function isFirstTime(stateDir: string, name: string): boolean {
  try {
    closeSync(openSync(join(stateDir, `told-${name}`), 'wx', 0o600));
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'EEXIST';
  }
}
