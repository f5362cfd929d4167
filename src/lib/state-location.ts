/** Where state lives and whose it is. Both ends of the API must come to the same answer. */

import { userInfo } from 'node:os';
import { join, resolve } from 'node:path';

export interface StateLocation {
  readonly stateDir: string;
  readonly uid: number;
}

export function stateLocation(env: Readonly<Record<string, string | undefined>>): StateLocation {
  const { uid, homedir } = userInfo();
  const home = env['HOME'] || homedir;
  const base = env['XDG_STATE_HOME'] || join(home, '.local', 'state');
  return { uid, stateDir: resolve(env['SALLYPORT_STATE_DIR'] || join(base, 'sallyport')) };
}
