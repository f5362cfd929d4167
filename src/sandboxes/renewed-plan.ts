/**
 * A box has the mounts that it was made with. Where the workspace has become another one meanwhile (a repository that was none, or
 * is none any more) they cannot be made, and the box must be.
 */

import { lstat } from 'node:fs/promises';
import { join } from 'node:path';
import type { BoxPlan } from '../policy/box-plan.ts';
import { plainPath } from '../policy/paths.ts';
import { protectWorkspace } from '../policy/protected-paths.ts';
import type { SandboxRecord } from './records.ts';
import { lookIntoWorkspace } from './workspace-look.ts';

/** Undefined: the box can be started as it is. */
export async function renewedPlan({
  spec,
  plan,
}: Pick<SandboxRecord, 'spec' | 'plan'>): Promise<BoxPlan | undefined> {
  const { workspace } = spec;
  const [root] = plan.mounts;
  if (plan.stubs === undefined || workspace === undefined || root === undefined) return undefined;
  const target = plainPath(workspace.target);
  const isProtection = (mount: { readonly target: string }): boolean => mount.target.startsWith(`${target}/`);
  const stubs = new Set(plan.stubs.map(({ path }) => path));
  const needed = plan.mounts.filter((mount) => isProtection(mount) && !stubs.has(mount.source));
  const missing = await Promise.all(needed.map(async ({ source }) => !(await isFolder(source))));
  if (!missing.includes(true) || !(await isFolder(root.source))) return undefined;
  const { protect = [], dangerously_unprotected: unprotected = [] } = workspace;
  const programs = (plan.programs ?? []).map((path) => join(root.source, path));
  const look = await lookIntoWorkspace(root.source, workspace, { isPlaceholder: () => false, programs });
  const renewed = protectWorkspace({ source: root.source, target }, { protect, unprotected }, look);
  return {
    ...plan,
    mounts: [...plan.mounts.filter((mount) => !isProtection(mount)), ...renewed.mounts],
    stubs: renewed.stubs,
    unprotected: renewed.unprotected,
    programs: renewed.programs,
  };
}

async function isFolder(path: string): Promise<boolean> {
  return await lstat(path).then(
    (facts) => facts.isDirectory(),
    () => false,
  );
}
