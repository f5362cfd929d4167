/**
 * A box has the mounts that it was made with. Where the workspace has become another one meanwhile (a repository that was none, or
 * is none any more), or something is gone from a tool's folder that was held there, they cannot be made, and the box must be.
 */

import { lstat } from 'node:fs/promises';
import { join } from 'node:path';
import type { BoxPlan } from '../policy/box-plan.ts';
import type { HeldFolder, HeldPaths } from '../policy/held-paths.ts';
import { plainPath } from '../policy/paths.ts';
import { protectWorkspace } from '../policy/protected-paths.ts';
import { protectTool } from '../policy/tool-protection.ts';
import type { ToolFolder } from '../policy/tool-sources.ts';
import type { BoxMount } from '../protocol/box.ts';
import type { SandboxRecord } from './records.ts';
import { lookIntoTool } from './tool-look.ts';
import { lookIntoWorkspace } from './workspace-look.ts';

/** No placeholder counts: what others put there is mounted on as anything else. */
const isPlaceholder = (): boolean => false;

export interface RenewedPlan {
  readonly plan: BoxPlan;
  /** For an event. */
  readonly code: 'workspace_renewed' | 'tool_renewed';
  readonly message: string;
}

/** Undefined: the box can be started as it is. */
export async function renewedPlan({
  spec,
  plan,
}: Pick<SandboxRecord, 'spec' | 'plan'>): Promise<RenewedPlan | undefined> {
  const inWorkspace = await withWorkspace(spec, plan);
  let renewed = inWorkspace;
  for (const folder of plan.toolFolders ?? [])
    renewed = (await withToolFolder(renewed ?? plan, folder)) ?? renewed;
  if (renewed === undefined) return undefined;
  const why =
    inWorkspace === undefined
      ? "something that was held in a tool's folder is gone"
      : 'the workspace is a repository that it was not before, or none any more';
  return {
    plan: renewed,
    code: inWorkspace === undefined ? 'tool_renewed' : 'workspace_renewed',
    message: `${why}; the container was made anew, without what was written outside of the workspace`,
  };
}

async function withWorkspace(spec: SandboxRecord['spec'], plan: BoxPlan): Promise<BoxPlan | undefined> {
  const { workspace } = spec;
  const [root] = plan.mounts;
  if (plan.unprotected === undefined || workspace === undefined || root === undefined) return undefined;
  const target = plainPath(workspace.target);
  const folder = { source: root.source, target };
  if (!(await isSomethingGone(plan, folder, isFolder)) || !(await isFolder(root.source))) return undefined;
  const { protect = [], dangerously_unprotected: unprotected = [] } = workspace;
  const programs = (plan.programs ?? []).map((path) => join(root.source, path));
  const look = await lookIntoWorkspace(root.source, workspace, { isPlaceholder, programs });
  const protection = protectWorkspace(folder, { protect, unprotected }, look);
  return {
    ...replaced(plan, folder, protection),
    unprotected: protection.unprotected,
    programs: protection.programs,
  };
}

async function withToolFolder(plan: BoxPlan, folder: ToolFolder): Promise<BoxPlan | undefined> {
  const { mountId, source, home } = folder;
  if (!(await isSomethingGone(plan, folder, isThere))) return undefined;
  const look = await lookIntoTool(mountId, { folder: source, home, isPlaceholder });
  const held = protectTool(folder, mountId, look);
  // What cannot be held now cannot be mounted either, which the start says.
  return 'because' in held ? undefined : replaced(plan, folder, held);
}

const isBelow = (path: string, folder: string): boolean => path.startsWith(`${folder}/`);

const isShadow = (plan: BoxPlan, { target }: BoxMount): boolean =>
  plan.shadows.some((shadow) => shadow.target === target);

/** What holds something in the folder. */
const isProtection = (plan: BoxPlan, folder: HeldFolder, mount: BoxMount): boolean =>
  isBelow(mount.target, folder.target) && !isShadow(plan, mount);

/** Something that is mounted over the folder, and for which nothing is put there. */
async function isSomethingGone(
  plan: BoxPlan,
  folder: HeldFolder,
  isUsable: (path: string) => Promise<boolean>,
): Promise<boolean> {
  const stubbed = new Set((plan.stubs ?? []).map(({ path }) => path));
  const needed = plan.mounts.filter(
    (mount) => isProtection(plan, folder, mount) && !stubbed.has(mount.source),
  );
  return (await Promise.all(needed.map(async ({ source }) => !(await isUsable(source))))).includes(true);
}

/** What is the sandbox's own is mounted last: the places for it are in the other mounts. */
function replaced(plan: BoxPlan, folder: HeldFolder, held: Pick<HeldPaths, 'mounts' | 'stubs'>): BoxPlan {
  const others = plan.mounts.filter((mount) => !isProtection(plan, folder, mount));
  return {
    ...plan,
    mounts: [
      ...others.filter((mount) => !isShadow(plan, mount)),
      ...held.mounts,
      ...others.filter((mount) => isShadow(plan, mount)),
    ],
    stubs: [...(plan.stubs ?? []).filter(({ path }) => !isBelow(path, folder.source)), ...held.stubs],
  };
}

async function isFolder(path: string): Promise<boolean> {
  return await lstat(path).then(
    (facts) => facts.isDirectory(),
    () => false,
  );
}

async function isThere(path: string): Promise<boolean> {
  return await lstat(path).then(
    () => true,
    () => false,
  );
}
