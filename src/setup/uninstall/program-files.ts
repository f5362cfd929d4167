/** The program itself: removed where an archive installed it, else the command is told that removes it. */

import { readlink, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type Installation, npmPlace } from '../../lib/installation.ts';
import { shellLine } from '../../lib/shell-words.ts';

const entry = '../lib/sallyport/package/dist/cli/sally.cjs';

/** Only the links that lead to it: others of that name in `bin` are somebody else's. Last of all, as it is running. */
export async function removeArchiveProgram(prefix: string): Promise<void> {
  for (const name of ['sally', 'sallyport']) {
    const link = join(prefix, 'bin', name);
    if ((await readlink(link).catch(() => undefined)) === entry) await rm(link, { force: true });
  }
  await rm(join(prefix, 'lib/sallyport'), { recursive: true, force: true });
}

/** Undefined: an archive installed it, and it is removed. */
export function removalLine(installation: Installation): string | undefined {
  switch (installation.kind) {
    case 'archive':
      return undefined;
    case 'checkout':
      return shellLine(['rm', '-r', installation.folder]);
    default:
      return shellLine(['npm', 'rm', ...npmPlace(installation), 'sallyport']);
  }
}
