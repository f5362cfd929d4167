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
  /** Mounts of the present container whose sources are gone, so that it cannot start. */
  readonly gone: readonly BoxMount[];
}

/** Undefined: the box can be started as it is. */
export async function renewedPlan({
  spec,
  plan,
}: Pick<SandboxRecord, 'spec' | 'plan'>): Promise<RenewedPlan | undefined> {
  const inWorkspace = await withWorkspace(spec, plan);
  const changes = inWorkspace === undefined ? [] : [inWorkspace];
  for (const folder of plan.toolFolders ?? []) {
    const inTool = await withToolFolder(changes.at(-1)?.plan ?? plan, folder);
    if (inTool !== undefined) changes.push(inTool);
  }
  const renewed = changes.at(-1)?.plan;
  if (renewed === undefined) return undefined;
  const why =
    inWorkspace === undefined
      ? "something that was held in a tool's folder is gone"
      : 'the workspace is a repository that it was not before, or none any more';
  return {
    plan: renewed,
    code: inWorkspace === undefined ? 'tool_renewed' : 'workspace_renewed',
    message: `${why}; the container was made anew, without what was written ${spec.workspace?.mode === 'live' ? 'outside of the workspace' : 'inside'}`,
    gone: changes.flatMap(({ gone }) => gone),
  };
}

type Changed = Pick<RenewedPlan, 'plan' | 'gone'>;

async function withWorkspace(spec: SandboxRecord['spec'], plan: BoxPlan): Promise<Changed | undefined> {
  const { workspace } = spec;
  const [root] = plan.mounts;
  if (plan.unprotected === undefined || workspace === undefined || root === undefined) return undefined;
  const target = plainPath(workspace.target);
  const folder = { source: root.source, target };
  const gone = await goneMounts(plan, folder, isFolder);
  if (gone.length === 0 || !(await isFolder(root.source))) return undefined;
  const { protect = [], dangerously_unprotected: unprotected = [] } = workspace;
  const programs = (plan.programs ?? []).map((path) => join(root.source, path));
  const look = await lookIntoWorkspace(root.source, workspace, { isPlaceholder, programs });
  const protection = protectWorkspace(folder, { protect, unprotected }, look);
  const { unprotected: left, programs: held } = protection;
  return { plan: { ...replaced(plan, folder, protection), unprotected: left, programs: held }, gone };
}

async function withToolFolder(plan: BoxPlan, folder: ToolFolder): Promise<Changed | undefined> {
  const { mountId, source, home } = folder;
  const gone = await goneMounts(plan, folder, isThere);
  if (gone.length === 0) return undefined;
  const look = await lookIntoTool(mountId, { folder: source, home, isPlaceholder });
  const held = protectTool(folder, mountId, look);
  // What cannot be held now cannot be mounted either, which the start says.
  return 'because' in held ? undefined : { plan: replaced(plan, folder, held), gone };
}

const isBelow = (path: string, folder: string): boolean => path.startsWith(`${folder}/`);

const isShadow = (plan: BoxPlan, { target }: BoxMount): boolean =>
  plan.shadows.some((shadow) => shadow.target === target);

/** What holds something in the folder. */
const isProtection = (plan: BoxPlan, folder: HeldFolder, mount: BoxMount): boolean =>
  isBelow(mount.target, folder.target) && !isShadow(plan, mount);

/** What is mounted over the folder and gone, and for which nothing is put there. */
async function goneMounts(
  plan: BoxPlan,
  folder: HeldFolder,
  isUsable: (path: string) => Promise<boolean>,
): Promise<readonly BoxMount[]> {
  const stubbed = new Set((plan.stubs ?? []).map(({ path }) => path));
  const needed = plan.mounts.filter(
    (mount) => isProtection(plan, folder, mount) && !stubbed.has(mount.source),
  );
  const looked = await Promise.all(
    needed.map(async (mount) => ((await isUsable(mount.source)) ? [] : [mount])),
  );
  return looked.flat();
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
