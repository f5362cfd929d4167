/** Looks into a live workspace, so that `policy/protected-paths.ts` can say what of it is to be held. Reads, and changes nothing. */

import { constants } from 'node:fs';
import { lstat, open, readdir } from 'node:fs/promises';
import { join, normalize } from 'node:path';
import type { PathFacts, PlanFacts } from '../policy/box-plan.ts';
import type { Found } from '../policy/held-paths.ts';
import { programNames } from '../policy/program-paths.ts';
import { foldedName, isExecutedPlace, isGitName } from '../policy/protected-names.ts';
import { pathsToLookAt, type WorkspaceLook } from '../policy/protected-paths.ts';
import type { Spec } from '../protocol/spec.ts';
import { lookAtWorktree } from './git-worktree-look.ts';
import { kindOf, pathFacts } from './path-facts.ts';
import { lookForPrograms } from './program-look.ts';

const mostConfigBytes = 1024 * 1024;

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
  const paths = pathsToLookAt([...protect, ...named, ...executed, ...programNames, ...own.paths]);
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
  const names = await readdir(folder).catch(() => []);
  return names.filter((name) => {
    const folded = foldedName(name);
    return !isGitName(folded) && isExecutedPlace([folded]);
  });
}

/**
 * Hooks that are elsewhere in the workspace, and configuration that is included from it. A path that leads out of the
 * workspace is not in reach of the sandbox.
 */
export async function namedByGit(folder: string): Promise<readonly string[]> {
  const pointer = /^gitdir: (.+)$/m.exec((await readSmall(join(folder, '.git'))) ?? '')?.[1];
  // A repository in the workspace under another name: all of it is held.
  if (pointer !== undefined) return [inside(folder, folder, pointer)].filter((path) => path !== undefined);
  const text = await readSmall(join(folder, '.git/config'));
  if (text === undefined) return [];
  const values = (pattern: RegExp): readonly string[] =>
    [...text.matchAll(pattern)].map((match) => (match[1] ?? '').trim().replaceAll('"', ''));
  const hooks = values(/^\s*hookspath\s*=(.*)$/gim).map((path) => inside(folder, folder, path));
  const included = values(/^\s*path\s*=(.*)$/gim).map((path) => inside(folder, join(folder, '.git'), path));
  return [...new Set([...hooks, ...included].filter((path) => path !== undefined))];
}

/** Relative to the workspace; undefined where it leads out of it, or is held with `.git` already. */
function inside(folder: string, base: string, path: string): string | undefined {
  if (path === '' || path.startsWith('~')) return undefined;
  const whole = normalize(path.startsWith('/') ? path : join(base, path)).replace(/\/+$/, '');
  const relative = whole.startsWith(`${folder}/`) ? whole.slice(folder.length + 1) : undefined;
  return relative === undefined || relative === '.git' || relative === '.git/hooks' ? undefined : relative;
}

export async function readSmall(path: string, mostBytes = mostConfigBytes): Promise<string | undefined> {
  const handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(
    () => undefined,
  );
  if (handle === undefined) return undefined;
  try {
    const facts = await handle.stat();
    if (!facts.isFile() || facts.size > mostBytes) return undefined;
    return await handle.readFile('utf8');
  } finally {
    await handle.close();
  }
}
