/**
 * The state folder and what may be in it: folders 0700, files 0600. It holds the tokens of sandboxes and what their
 * programs printed, so a folder that others own or may open is refused, never repaired in silence.
 */

import { mkdirSync, renameSync, rmSync, type Stats, statSync, writeFileSync } from 'node:fs';
import { SallyportError } from '../protocol/errors.ts';
import { stateFailure } from './state-failure.ts';

export const folderMode = 0o700;
export const fileMode = 0o600;

export function provideStateFolder(path: string): void {
  try {
    mkdirSync(path, { recursive: true, mode: folderMode });
  } catch (cause) {
    throw stateFailure('making the state folder', path, cause);
  }
  const facts = lookAt(path);
  const uid = process.getuid?.();
  // SECURITY: whoever may write here decides what the daemon believes about its sandboxes.
  if (uid !== undefined && facts.uid !== uid) {
    throw new SallyportError(
      'state_unsafe',
      `the state folder ${path} belongs to user ${facts.uid}, not to ${uid}`,
      {
        details: { path, uid: facts.uid },
      },
    );
  }
  if ((facts.mode & 0o077) !== 0) {
    const mode = (facts.mode & 0o777).toString(8);
    throw new SallyportError('state_unsafe', `the state folder ${path} is open to others (mode ${mode})`, {
      advice: `Run \`chmod 700 ${path}\`, or choose another folder with SALLYPORT_STATE_DIR.`,
      details: { path, mode },
    });
  }
}

function lookAt(path: string): Stats {
  try {
    return statSync(path);
  } catch (cause) {
    throw stateFailure('reading the state folder', path, cause);
  }
}

export function provideFolder(path: string): void {
  try {
    mkdirSync(path, { recursive: true, mode: folderMode });
  } catch (cause) {
    throw stateFailure('making a folder', path, cause);
  }
}

/**
 * All of the old content or all of the new, whenever this process dies. Not synced to the disk: a machine that loses power
 * ends the sandboxes that this is about as well.
 */
export function replaceFile(path: string, content: string | Buffer): void {
  const temporary = `${path}.new`;
  try {
    writeFileSync(temporary, content, { mode: fileMode });
    renameSync(temporary, path);
  } catch (cause) {
    rmSync(temporary, { force: true });
    throw stateFailure('writing a file', path, cause);
  }
}
