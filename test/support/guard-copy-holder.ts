/** Makes the copy of a folder for a guarded command, says where it is, and keeps it until it is killed. */

import { readableFolder } from '../../src/guard/readable-folder.ts';

/** The line that it prints, as JSON. */
export interface HeldCopy {
  readonly path: string;
}

const [folder = '', stateDir = ''] = process.argv.slice(2);
const { path = '' } = await readableFolder(folder, stateDir);
process.stdout.write(`${JSON.stringify({ path } satisfies HeldCopy)}\n`);
process.stdin.resume();
