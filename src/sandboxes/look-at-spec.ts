/** Looks at everything of the host that a spec names, so that `policy/` can judge it. It changes nothing. */

import { readlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { PlanFacts } from '../policy/box-plan.ts';
import { type WantedMount, wantedMounts } from '../policy/builtin-tools.ts';
import { linkText } from '../policy/copy-links.ts';
import { isWithin } from '../policy/paths.ts';
import { isCopiedWhole, ownNames } from '../policy/tool-names.ts';
import { isHeldIn, type ToolFacts } from '../policy/tool-sources.ts';
import type { Spec } from '../protocol/spec.ts';
import { CopyTree, type Listing } from './copy-tree.ts';
import { pathFacts } from './path-facts.ts';
import { lookIntoTool } from './tool-look.ts';
import { lookAtWorkspace, type WorkspaceKnown } from './workspace-look.ts';

export type Looked = Pick<
  PlanFacts,
  'workspace' | 'inWorkspace' | 'worktree' | 'mounts' | 'copies' | 'tools'
>;

/** `home`: the user's, where the folders of built-in tools are. */
export async function lookAtSpec(spec: Spec, home: string, known: WorkspaceKnown): Promise<Looked> {
  const { workspace, mounts = [], copies = [], builtin_tools: tools = [] } = spec;
  const sources = (field: string, entries: readonly { readonly source: string }[]) =>
    Promise.all(entries.map(({ source }, index) => pathFacts(`${field}.${index}.source`, source)));
  return {
    mounts: await sources('mounts', mounts),
    copies: await sources('copies', copies),
    tools: await Promise.all(wantedMounts(tools).map((mount) => toolFacts(mount, home, known))),
    ...(workspace === undefined ? {} : await lookAtWorkspace(workspace, known)),
  };
}

async function toolFacts(
  mount: WantedMount,
  home: string,
  { isPlaceholder }: WorkspaceKnown,
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
  const escapes = await escapingLink(real, hidden);
  if (escapes !== undefined) return { id, home, found, escapes };
  return {
    id,
    home,
    found,
    ...(isProtected ? { look: await lookIntoTool(id, { folder: real, home, isPlaceholder }) } : {}),
  };
}

/** The first link that leads out of the tree, if there is one. */
async function escapingLink(root: string, hidden: readonly string[]): Promise<string | undefined> {
  const tree = new CopyTree(root, { patterns: hidden, from: [] });
  const rootBytes = Buffer.from(root).toString('latin1');
  const escapes = async (path: Buffer): Promise<boolean> => {
    const target = (await readlink(tree.absolute(path), { encoding: 'buffer' })).toString('latin1');
    // Also one whose text would have to be another: a bind shows it as it is.
    return linkText(rootBytes, path.toString('latin1'), target) !== target;
  };
  const find = async ({ entries, rules }: Listing): Promise<string | undefined> => {
    for (const { path, entry } of entries) {
      if (entry.isSymbolicLink() && (await unlessGone(escapes(path)))) return path.toString('utf8');
      const listing = entry.isDirectory() ? await unlessGone(tree.below(path, rules)) : undefined;
      const below = listing === undefined ? undefined : await find(listing);
      if (below !== undefined) return below;
    }
    return undefined;
  };
  const top = await unlessGone(tree.top());
  return top === undefined ? undefined : await find(top);
}

/** What went meanwhile or may not be read shows nothing inside either. */
async function unlessGone<T>(look: Promise<T>): Promise<T | undefined> {
  try {
    return await look;
  } catch (error) {
    const code = (error as { readonly code?: unknown }).code;
    const isGone = ['ENOENT', 'EACCES', 'EPERM', 'EINVAL', 'copy_changed', 'copy_unreadable'];
    if (isGone.includes(String(code))) return undefined;
    throw error;
  }
}
