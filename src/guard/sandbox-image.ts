/** The user's image for guarded commands, as the environment and the user's own file have it now. */

import { readConfigEnvironment } from '../config/config.ts';
import { type GuardImage, guardImage } from '../config/guard-image.ts';
import { readUserFile } from '../config/user-file.ts';

export type { GuardImage };

/** Undefined: Sallyport's base image. */
export async function readGuardImage(): Promise<GuardImage | undefined> {
  const environment = readConfigEnvironment();
  return guardImage(environment, await readUserFile(environment.userFile, environment.home));
}
