/**
 * What a test needs of the machine. Where the suite must work (`SALLYPORT_MUST_WORK=1`, as in CI) a missing thing is a
 * failure, because a test that silently does not run proves nothing.
 */

import { spawnSync } from 'node:child_process';

export const mustWork = process.env['SALLYPORT_MUST_WORK'] === '1';

export const full = process.env['SALLYPORT_FULL'] === '1';

export const isRoot = process.getuid?.() === 0;

export interface RequirementOptions {
  /** False where a machine of this kind cannot have the thing at all (another platform): then it is not applicable. */
  readonly possible?: boolean;
}

/** For `describe.runIf`; throws instead of answering false where the thing must be there. */
export function requirement(name: string, available: boolean, options: RequirementOptions = {}): boolean {
  if (available) return true;
  if (mustWork && (options.possible ?? true)) {
    throw new Error(`${name} is required by this test, and SALLYPORT_MUST_WORK=1 says that it must be here`);
  }
  return false;
}

/** Tests that need root do not apply to an ordinary user, also where everything must work. */
export function requiresRoot(): boolean {
  return requirement('root', isRoot, { possible: false });
}

export function commandExists(name: string): boolean {
  return spawnSync('sh', ['-c', 'command -v "$1"', 'sh', name], { stdio: 'ignore' }).status === 0;
}
