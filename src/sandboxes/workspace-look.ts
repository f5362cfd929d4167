/** Looks into a live workspace, so that `policy/protected-paths.ts` can say what of it is to be held. Reads, and changes nothing. */

import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { PathFacts, PlanFacts } from '../policy/box-plan.ts';
import type { Found } from '../policy/held-paths.ts';
import { programNames } from '../policy/program-paths.ts';
import { foldedName, isExecutedPlace, isGitName, patternFolders } from '../policy/protected-names.ts';
import { pathsToLookAt, type WorkspaceLook } from '../policy/protected-paths.ts';
import type { Spec } from '../protocol/spec.ts';
import { namedByGit } from './git-named.ts';
import { lookAtWorktree } from './git-worktree-look.ts';
import { kindOf, pathFacts } from './path-facts.ts';
import { lookForPrograms } from './program-look.ts';

/** What is known of the machine besides. */
export interface WorkspaceKnown {
  /** Of another sandbox: it counts as missing. */
  readonly isPlaceholder: (path: string) => boolean;
  /** What runs this: folders and files, absolute. */
  readonly programs: readonly string[];
}

/** The workspace of a spec, with what is in it where that matters. */
export async function lookAtWorkspace(
  workspace: NonNullable<Spec['workspace']>,
  { isPlaceholder, programs }: WorkspaceKnown,
): Promise<Pick<PlanFacts, 'inWorkspace' | 'worktree'> & { readonly workspace: PathFacts }> {
  const facts = await pathFacts('workspace.path', workspace.path);
  if (workspace.mode === 'copy' || workspace.mode === 'clone' || facts.realKind !== 'directory')
    return { workspace: facts };
  const worktree = await lookAtWorktree(facts.real);
  const looked = { workspace: facts, ...(worktree === undefined ? {} : { worktree }) };
  if (workspace.mode !== 'live') return looked;
  return {
    ...looked,
    inWorkspace: await lookIntoWorkspace(facts.real, workspace, { isPlaceholder, programs }),
  };
}

/** `folder`: its real path. */
export async function lookIntoWorkspace(
  folder: string,
  { protect = [] }: Pick<NonNullable<Spec['workspace']>, 'protect'>,
  { isPlaceholder, programs }: WorkspaceKnown,
): Promise<WorkspaceLook> {
  const [named, executed, own] = await Promise.all([
    namedByGit(folder),
    executedAtRoot(folder),
    lookForPrograms(folder, programs),
  ]);
  const paths = pathsToLookAt([
    ...protect,
    ...named.map(({ path }) => path),
    ...executed,
    ...programNames,
    ...own.paths,
    ...own.nearer,
  ]);
  return { found: await foundKinds(folder, paths, isPlaceholder), named, executed, programs: own };
}

/** What is at these paths of a folder; a placeholder of another sandbox counts as missing. */
export async function foundKinds(
  folder: string,
  paths: readonly string[],
  isPlaceholder: WorkspaceKnown['isPlaceholder'],
): Promise<Found> {
  const kinds = await Promise.all(
    paths.map(async (path) => {
      const facts = isPlaceholder(join(folder, path))
        ? undefined
        : await lstat(join(folder, path)).catch(() => undefined);
      return facts === undefined ? [] : [[path, kindOf(facts)] as const];
    }),
  );
  return Object.fromEntries(kinds.flat());
}

/** Also those whose names only some file systems take for one of the list, as `.VSCode`. What belongs to git has rules of its own. */
async function executedAtRoot(folder: string): Promise<readonly string[]> {
  const found = await Promise.all(
    ['', ...patternFolders].map(async (at) => {
      const names = await readdir(join(folder, at)).catch(() => []);
      return names.map((name) => (at === '' ? name : `${at}/${name}`)).filter(isExecuted);
    }),
  );
  return found.flat();
}

function isExecuted(path: string): boolean {
  const parts = path.split('/').map(foldedName);
  return !isGitName(parts.at(-1) ?? '') && isExecutedPlace(parts);
}
