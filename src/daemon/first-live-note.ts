/** Said once, with the first live workspace: a setting of git that closes what a scan can only report. */

import type { SetupEnvironment } from '../setup/config.ts';
import { bareRepositoryAdvice, gatherHostGit, isExplicit } from '../setup/doctor/host-git.ts';
import { isFirstTime } from '../store/told-once.ts';

export async function firstLiveNote(
  stateDir: string,
  setup: SetupEnvironment,
): Promise<{ readonly code: string; readonly message: string } | undefined> {
  if (!isFirstTime(stateDir, 'bare-repositories')) return undefined;
  const facts = await gatherHostGit(setup);
  if (isExplicit(facts)) return undefined;
  return {
    code: 'git_bare_repositories',
    message: `git on this machine runs programs that a bare repository in any folder names, and a sandbox can leave one in a live workspace. ${bareRepositoryAdvice(facts)}`,
  };
}
