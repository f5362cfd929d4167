/** Removes the program where an archive installed it; else names the command that removes it. */

import { readlink, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type Installation, npmPlace } from '../../lib/installation.ts';
import { shellLine } from '../../lib/shell-words.ts';

const entry = '../lib/sallyport/package/dist/cli/sally.cjs';

/** Removes only links that lead to this installation. The last step: the running program removes itself. */
export async function removeArchiveProgram(prefix: string): Promise<void> {
  for (const name of ['sally', 'sallyport']) {
    const link = join(prefix, 'bin', name);
    if ((await readlink(link).catch(() => undefined)) === entry) await rm(link, { force: true });
  }
  await rm(join(prefix, 'lib/sallyport'), { recursive: true, force: true });
}

/** Undefined: an archive, which is removed; or a checkout, which may hold work of its user. */
export function removalLine(installation: Installation): string | undefined {
  switch (installation.kind) {
    case 'archive':
    case 'checkout':
      return undefined;
    default:
      return shellLine(['npm', 'rm', ...npmPlace(installation), 'sallyport']);
  }
}
