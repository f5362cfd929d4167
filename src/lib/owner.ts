/** Whose objects in an engine these are: a hash of the user and the state folder, so that a lost store still finds its own. */

import { createHash } from 'node:crypto';

export function ownerId(uid: number, stateDir: string): string {
  return createHash('sha256').update(`${uid}\0${stateDir}`).digest('hex').slice(0, 16);
}
