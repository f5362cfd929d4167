/**
 * Host paths of a spec with the links on the way to them followed: where they lead at this moment is what a person means by a flag,
 * and what a person is shown and approves of a project file. The daemon follows none of these links later.
 *
 * The last part of a mount or a copy stays as it is. A link there is refused, by the daemon.
 */

import { realpathSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { SpecFragment } from './spec-source.ts';

/** Paths are absolute. `workspace`: that of the workspace too, in all its parts. */
export function withRealSources(
  fragment: SpecFragment,
  { workspace: isWhole = false }: { readonly workspace?: boolean } = {},
): SpecFragment {
  const { workspace, mounts, copies } = fragment;
  return {
    ...fragment,
    ...(workspace?.path === undefined || !isWhole
      ? {}
      : { workspace: { ...workspace, path: real(workspace.path) } }),
    ...(mounts === undefined
      ? {}
      : { mounts: mounts.map((mount) => ({ ...mount, source: realParent(mount.source) })) }),
    ...(copies === undefined
      ? {}
      : { copies: copies.map((copy) => ({ ...copy, source: realParent(copy.source) })) }),
  };
}

/** What is missing stays as it is, and is refused by the daemon. */
function real(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

const realParent = (path: string): string => join(real(dirname(path)), basename(path));
