/** Looks at everything of the host that a spec names, so that `policy/` can judge it. It changes nothing. */

import { join } from 'node:path';
import type { PlanFacts } from '../policy/box-plan.ts';
import { type WantedMount, wantedMounts } from '../policy/builtin-tools.ts';
import { isWithin } from '../policy/paths.ts';
import { isCopiedWhole, ownNames } from '../policy/tool-names.ts';
import { isHeldIn, type ToolFacts } from '../policy/tool-sources.ts';
import type { Spec } from '../protocol/spec.ts';
import { escapingLink } from './escaping-link.ts';
import { pathFacts } from './path-facts.ts';
import { lookIntoTool } from './tool-look.ts';
import { lookAtWorkspace, type WorkspaceKnown } from './workspace-look.ts';

export type Looked = Pick<
  PlanFacts,
  'workspace' | 'inWorkspace' | 'worktree' | 'mounts' | 'copies' | 'tools'
>;

/** `home`: the user's, where the folders of built-in tools are. */
export async function lookAtSpec(
  spec: Spec,
  home: string,
  known: WorkspaceKnown,
  signal?: AbortSignal,
): Promise<Looked> {
  const { workspace, mounts = [], copies = [], builtin_tools: tools = [] } = spec;
  const sources = (field: string, entries: readonly { readonly source: string }[]) =>
    Promise.all(entries.map(({ source }, index) => pathFacts(`${field}.${index}.source`, source)));
  return {
    mounts: await sources('mounts', mounts),
    copies: await sources('copies', copies),
    tools: await Promise.all(wantedMounts(tools).map((mount) => toolFacts(mount, home, known, signal))),
    ...(workspace === undefined ? {} : await lookAtWorkspace(workspace, known)),
  };
}

async function toolFacts(
  mount: WantedMount,
  home: string,
  { isPlaceholder }: WorkspaceKnown,
  signal: AbortSignal | undefined,
): Promise<ToolFacts> {
  const { id, source } = mount;
  const found = await pathFacts('builtin_tools', join(home, source));
  const { real, realKind } = found;
  // What is elsewhere is refused, and may be as large as the machine.
  const isLookedInto = realKind === 'directory' && real !== home && isWithin(real, home);
  const isProtected = isHeldIn(mount);
  if (!isLookedInto || (isProtected && isCopiedWhole(id))) return { id, home, found };
  // Inside there is something else in their place, whatever they contain.
  const hidden = isProtected ? ownNames(id).map(({ name }) => `/${name}`) : [];
  const escapes = await escapingLink(real, { hidden, signal });
  if (escapes !== undefined) return { id, home, found, escapes };
  return {
    id,
    home,
    found,
    ...(isProtected ? { look: await lookIntoTool(id, { folder: real, home, isPlaceholder }) } : {}),
  };
}
