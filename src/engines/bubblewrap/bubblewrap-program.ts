/** The bubblewrap of this machine, and whether it will do. */

import { execFile } from 'node:child_process';
import { access, constants } from 'node:fs/promises';
import { promisify } from 'node:util';
import { SallyportError } from '../../protocol/errors.ts';

/** SECURITY: fixed places. A PATH may begin with a folder that somebody else writes to. */
const places = ['/usr/bin/bwrap', '/usr/local/bin/bwrap', '/bin/bwrap'];
const needed = ['--disable-userns', '--size', '--perms', '--as-pid-1', '--json-status-fd', '--seccomp'];
const answerMs = 5000;

export interface BubblewrapProgram {
  readonly path: string;
  readonly version: string;
}

export async function findBubblewrap(): Promise<BubblewrapProgram> {
  for (const path of places) {
    const isThere = await access(path, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (isThere) return await judged(path);
  }
  throw new SallyportError('engine_unreachable', 'bubblewrap is not installed', {
    details: { places },
    advice: 'Install it (`apt-get install bubblewrap`), or use Docker (`--engine docker`).',
  });
}

async function judged(path: string): Promise<BubblewrapProgram> {
  const ask = async (option: string): Promise<string> =>
    (await promisify(execFile)(path, [option], { timeout: answerMs, env: {} })).stdout;
  try {
    const [version, help] = await Promise.all([ask('--version'), ask('--help')]);
    const missing = needed.filter((option) => !help.includes(option));
    if (missing.length === 0) return { path, version: version.trim().replace(/^bubblewrap /, '') };
    throw new SallyportError('engine_too_old', `${path} has no ${missing.join(', ')}`, {
      details: { path, missing },
      advice: 'Upgrade to bubblewrap 0.8 or newer.',
    });
  } catch (cause) {
    if (cause instanceof SallyportError) throw cause;
    throw new SallyportError('engine_failed', `${path} does not run`, { cause, details: { path } });
  }
}
