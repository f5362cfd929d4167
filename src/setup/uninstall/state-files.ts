/**
 * What an uninstallation removes of the state folder. Only names that Sallyport gives there: SALLYPORT_STATE_DIR may by mistake
 * name a folder that holds other things as well.
 */

import { lstat, readdir, readFile, rm, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { SallyportError } from '../../protocol/errors.ts';
import { mountsBelow } from '../private-engine/mounts.ts';

/** What a user would miss; `--purge` removes it. */
const keptNames: ReadonlySet<string> = new Set(['secrets.json', 'audit', 'audit-head']);

/** All names of docs/state.md. */
const knownNames =
  /^(?:daemon\.(?:sock|log(?:\.\d+)?|lock(?:\..*)?)|events|sandboxes|clones|guard-copies|images|passed-images|bubblewrap|tor|previews|engine|engines|daemon\.json|token|approver-token|mcp\.json|approvals\.json|told-[a-z-]+)(?:\.new)?$|^(?:audit|secrets\.json|approvals\.json|token|approver-token)\.lock(?:\..*)?$/;

export interface StateFiles {
  readonly removes: readonly string[];
  readonly keeps: readonly string[];
  /** Not ours. */
  readonly foreign: readonly string[];
}

export async function listStateFiles(
  stateDir: string,
  options: { readonly purge: boolean },
): Promise<StateFiles> {
  const names = await readdir(stateDir).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
  const isKept = (name: string): boolean => keptNames.has(name.replace(/\.new$/, ''));
  return {
    removes: names.filter((name) => (isKept(name) ? options.purge : knownNames.test(name))),
    keeps: names.filter((name) => isKept(name) && !options.purge),
    foreign: names.filter((name) => !isKept(name) && !knownNames.test(name)),
  };
}

/** The folder goes with the last of them. */
export async function removeStateFiles(
  stateDir: string,
  options: { readonly purge: boolean; readonly uid: number },
): Promise<void> {
  const facts = await lstat(stateDir).catch(() => undefined);
  if (facts === undefined) return;
  if (options.uid >= 0 && facts.uid !== options.uid) {
    throw new SallyportError('state_unsafe', `the state folder ${stateDir} belongs to user ${facts.uid}`, {
      details: { path: stateDir, uid: facts.uid },
    });
  }
  // SECURITY: a recursive removal through a mount would delete what is mounted there.
  const [mounted] = mountsBelow(await readFile('/proc/self/mountinfo', 'utf8').catch(() => ''), stateDir);
  if (mounted !== undefined && mounted !== stateDir) {
    throw new SallyportError('state_failed', `something is mounted at ${mounted}`, {
      details: { path: mounted },
      advice: `Unmount it (\`umount ${mounted}\`), then run this again.`,
    });
  }
  for (const name of (await listStateFiles(stateDir, options)).removes)
    await rm(join(stateDir, name), { recursive: true, force: true });
  await rmdir(stateDir).catch((error: NodeJS.ErrnoException) => {
    if (!['ENOENT', 'ENOTEMPTY', 'EEXIST', 'EBUSY'].includes(error.code ?? '')) throw error;
  });
}
