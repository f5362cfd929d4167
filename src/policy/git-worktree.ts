/**
 * A workspace that is a worktree of a repository elsewhere: its `.git` is a file, and what git needs lies in that repository. It
 * is provided inside at the same path, read-only but for what a commit writes. Pure.
 *
 * SECURITY: the `.git` file came with the folder, so it is believed only where the repository says the same.
 */

import type { BoxMount } from '../protocol/box.ts';
import { forbiddenSource, type HostPlaces } from './forbidden-sources.ts';
import type { Stub } from './held-paths.ts';

/** Of a worktree whose repository points back at it. All paths are real, and as git writes them. */
export interface WorktreeLook {
  /** The repository's own `.git`. */
  readonly commonDir: string;
  /** `<commonDir>/worktrees/<name>`. */
  readonly gitDir: string;
  /** Of what a commit writes to, what is there: `objects`, `refs`, `logs`. */
  readonly written: readonly string[];
}

/** Why git will not work inside. */
export interface NoWorktree {
  readonly because: string;
}

export interface WorktreeMounts {
  readonly mounts: readonly BoxMount[];
  readonly stubs: readonly Stub[];
}

export function worktreeMounts(
  { commonDir, gitDir, written }: WorktreeLook,
  isLive: boolean,
  places: HostPlaces,
): WorktreeMounts | NoWorktree {
  const refusal = forbiddenSource(commonDir, isLive, places);
  if (refusal !== undefined) return { because: `its repository is ${commonDir}, and ${refusal.because}` };
  const at = (path: string, writable: boolean): BoxMount => ({ source: path, target: path, writable });
  const repository = at(commonDir, false);
  if (!isLive) return { mounts: [repository], stubs: [] };
  return {
    mounts: [
      repository,
      ...written.map((name) => at(`${commonDir}/${name}`, true)),
      at(gitDir, true),
      // SECURITY: `modules` has the configuration and the hooks of this worktree's submodules.
      ...['commondir', 'gitdir', 'config.worktree', 'modules'].map((name) => at(`${gitDir}/${name}`, false)),
    ],
    stubs: [{ path: `${gitDir}/config.worktree`, content: '' }, { path: `${gitDir}/modules` }],
  };
}
