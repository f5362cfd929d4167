/**
 * Where copies of folders for guarded commands are, below the state folder. Each is in a folder that is named after the process it
 * was made for, so that what a killed one left can be told from what is in use.
 */

import { hash, randomBytes } from 'node:crypto';
import { mkdir, readdir, realpath, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { processStart } from '../lib/process-start.ts';
import { guardCopiesName } from '../protocol/guard-copy-place.ts';

/** A new folder of this process, which nobody else may enter. */
export async function newGuardCopy(stateDir: string): Promise<string> {
  const all = join(stateDir, guardCopiesName);
  await mkdir(all, { recursive: true, mode: 0o700 });
  // A mount may have no link on the way.
  const path = join(
    await realpath(all),
    `${process.pid}-${startOf(process.pid)}-${randomBytes(8).toString('hex')}`,
  );
  await mkdir(path, { mode: 0o700 });
  return path;
}

/** Removes copies whose process has ended. */
export async function sweepGuardCopies(stateDir: string): Promise<void> {
  const all = join(stateDir, guardCopiesName);
  const names = await readdir(all).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
  for (const name of names) {
    const [pid = '', start = ''] = name.split('-');
    if (startOf(Number(pid)) !== start) await rm(join(all, name), { recursive: true, force: true });
  }
}

/** Empty: there is no such process. */
function startOf(pid: number): string {
  const start = processStart(pid);
  return start === undefined ? '' : hash('sha256', start).slice(0, 16);
}
