/** Where state lives and whose it is, from the process environment. */

import { userInfo } from 'node:os';
import { join } from 'node:path';

export interface StateLocation {
  readonly stateDir: string;
  readonly uid: number;
}

export function readStateLocation(env: NodeJS.ProcessEnv = process.env): StateLocation {
  const { uid, homedir } = userInfo();
  const home = env['HOME'] || homedir;
  const base = env['XDG_STATE_HOME'] || join(home, '.local', 'state');
  return { uid, stateDir: env['SALLYPORT_STATE_DIR'] || join(base, 'sallyport') };
}
