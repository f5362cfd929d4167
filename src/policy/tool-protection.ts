/**
 * How the folder of a built-in tool is given to a sandbox in mode `protected`: writable, with all that the host executes or obeys in
 * it held (`tool-names.ts`), what settings of the tool name as programs, and what git obeys. Pure.
 */

import {
  type Found,
  type FoundKind,
  type HeldFolder,
  type HeldPaths,
  holdPaths,
  type Rule,
} from './held-paths.ts';
import { foldedName } from './protected-names.ts';
import { gitPlaces, gitRules, withAncestors } from './protected-paths.ts';
import { rootGitRules, rootRepository } from './root-git.ts';
import { isScriptName, toolNameMatcher } from './tool-name-match.ts';
import { heldNames, ownNames, toolState } from './tool-names.ts';

/** What the host has in the folder of a tool. */
export interface ToolLook {
  readonly found: Found;
  /** Names at the root that are programs, or that fit a pattern of the list. */
  readonly executed: readonly string[];
  /** Relative paths that settings of the tool or git's configuration name; they may be missing. */
  readonly named: readonly string[];
}

/** Relative paths that must be looked at before `protectTool` can say anything. */
export const toolPlaces = (mount: string, more: readonly string[]): readonly string[] =>
  withAncestors([...fixedRules(mount).map(({ path }) => path), ...gitPlaces, ...more]);

/** `because`: it cannot be held, in words that follow the name of the folder. */
export function protectTool(
  folder: HeldFolder,
  mount: string,
  look: ToolLook,
): HeldPaths | { readonly because: string } {
  const root = rootRepository(look.found);
  if (root !== undefined) return { because: `git takes it for a git directory (${root.what})` };
  try {
    return holdPaths(folder, toolRules(mount, look), look.found, cannotHold);
  } catch (error) {
    if (error instanceof CannotHoldError) return { because: error.message };
    throw error;
  }
}

function toolRules(mount: string, { found, executed, named }: ToolLook): readonly Rule[] {
  return [
    ...rootGitRules(found, false),
    ...fixedRules(mount),
    ...executed.map((path): Rule => ({ path, missing: 'forget' })),
    ...named.map((path): Rule => ({ path: heldWith(mount, path), missing: 'folder' })),
    ...gitRules({ found }),
  ];
}

const fixedRules = (mount: string): readonly Rule[] => [
  ...heldNames(mount)
    .filter(({ name }) => !name.includes('*'))
    .map(({ name, missing }): Rule => ({ path: name, missing: missing === 'scan' ? 'forget' : missing })),
  ...ownNames(mount).map(({ name }): Rule => ({ path: name, missing: 'folder', inside: 'own' })),
];

/**
 * Whether an empty folder may take the place of something that was held and is gone. Only for a script at the root of the folder: of other
 * names the tool or git may obey the mere existence.
 */
export const mayHavePlaceholder = (mount: string, path: string): boolean =>
  !path.includes('/') && isScriptName(path) && !toolNameMatcher(mount)([foldedName(path)]);

/** A program runs what lies beside it, so all of its folder is held, unless the tool keeps its state there. */
export function heldWith(mount: string, path: string): string {
  const [first = path, ...rest] = path.split('/');
  return rest.length === 0 || (toolState[mount] ?? []).includes(first) ? path : first;
}

class CannotHoldError extends Error {}

function cannotHold(_path: string, place: string, kind: FoundKind): Error {
  const what = { symlink: 'a link', other: 'neither a file nor a folder', file: 'a file', directory: '' };
  return new CannotHoldError(`${place} in it is ${what[kind]}, which cannot be held`);
}
