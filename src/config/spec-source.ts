/** The places that settings come from, and how a person wrote them there. Paths in them are made absolute when they are read. */

import { isAbsolute, join, resolve } from 'node:path';
import type { SpecInput } from '../protocol/spec.ts';

export type SourceKind = 'flag' | 'environment' | 'project' | 'user' | 'default';

/** Part of a spec: also of its maps, so that a flag can change the mode of a workspace and leave its path. */
export type SpecFragment = {
  readonly [K in keyof SpecInput]: K extends 'workspace'
    ? Partial<NonNullable<SpecInput[K]>> | undefined
    : SpecInput[K];
};

export interface SpecSource {
  readonly kind: SourceKind;
  readonly fragment: SpecFragment;
  /** The file. */
  readonly file?: string;
  /** The name that a field has here, where it has another: `SALLYPORT_MEM`, `--memory`. */
  readonly names?: Readonly<Record<string, string>>;
}

/** Relative paths are relative to the folder that they were written in, and `~/` is the home of the user. */
export function withAbsolutePaths(fragment: SpecFragment, folder: string, home: string): SpecFragment {
  const absolute = (path: string): string => {
    if (path === '~' || path.startsWith('~/')) return join(home, path.slice(1));
    return isAbsolute(path) ? resolve(path) : resolve(folder, path);
  };
  const { workspace, mounts, copies } = fragment;
  return {
    ...fragment,
    ...(workspace?.path === undefined ? {} : { workspace: { ...workspace, path: absolute(workspace.path) } }),
    ...(mounts === undefined
      ? {}
      : { mounts: mounts.map((mount) => ({ ...mount, source: absolute(mount.source) })) }),
    ...(copies === undefined
      ? {}
      : { copies: copies.map((copy) => ({ ...copy, source: absolute(copy.source) })) }),
  };
}
