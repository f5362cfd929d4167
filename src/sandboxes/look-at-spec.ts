/** Looks at everything of the host that a spec names, so that `policy/` can judge it. It changes nothing. */

import { readlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { PlanFacts } from '../policy/box-plan.ts';
import { wantedMounts } from '../policy/builtin-tools.ts';
import { linkText } from '../policy/copy-links.ts';
import { isWithin } from '../policy/paths.ts';
import type { ToolFacts } from '../policy/tool-sources.ts';
import type { Spec } from '../protocol/spec.ts';
import { CopyTree, type Listing } from './copy-tree.ts';
import { pathFacts } from './path-facts.ts';
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
    tools: await Promise.all(wantedMounts(tools).map(({ id, source }) => toolFacts(id, home, source))),
    ...(workspace === undefined ? {} : await lookAtWorkspace(workspace, known)),
  };
}

async function toolFacts(id: string, home: string, source: string): Promise<ToolFacts> {
  const found = await pathFacts('builtin_tools', join(home, source));
  const { real, realKind } = found;
  // What is elsewhere is refused, and may be as large as the machine.
  const isLookedInto = realKind === 'directory' && real !== home && isWithin(real, home);
  const escapes = isLookedInto ? await escapingLink(real) : undefined;
  return { id, home, found, ...(escapes === undefined ? {} : { escapes }) };
}

/** The first link that leads out of the tree, if there is one. */
async function escapingLink(root: string): Promise<string | undefined> {
  const tree = new CopyTree(root, { patterns: [], from: [] });
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
