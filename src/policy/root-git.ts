/**
 * The root of a live workspace must not become a git directory: where `.git` is invalid or missing git takes the root itself for one
 * if it has HEAD, objects and refs, and then runs programs that the file `config` beside them names. Pure.
 *
 * Placeholders keep the root from it. An empty folder `commondir` ends git with an error before it reads any configuration, while
 * the sandbox runs. A placeholder of `refs` (else `objects`, else `HEAD`) keeps the sandbox from making that, so that it is missing
 * when the placeholders are gone. `HEAD` comes last: with a folder of that name `git diff HEAD` is ambiguous and fails.
 */

import { SallyportError } from '../protocol/errors.ts';
import type { Found, Rule } from './held-paths.ts';

const common = 'commondir';
const shape = ['refs', 'objects', 'HEAD'] as const;

/** Of the root. */
export const rootGitNames: readonly string[] = [common, ...shape];

/** `isLeft`: everything is writable by request. The first is made first and removed last. */
export function rootGitRules(found: Found, isLeft: boolean): readonly Rule[] {
  const missing = shape.find((name) => found[name] === undefined);
  if (!isLeft) refuseRootRepository(found);
  return [
    { path: common, missing: 'folder' },
    { path: missing ?? 'HEAD', missing: 'folder' },
  ];
}

/** Why git takes the folder itself for a git directory; undefined: it does not. A folder `HEAD` is no head. */
export function rootRepository(found: Found): { readonly what: string; readonly path: string } | undefined {
  const hasHead = found['HEAD'] !== undefined && found['HEAD'] !== 'directory';
  if (hasHead && found['refs'] !== undefined && found['objects'] !== undefined)
    return { what: 'it has HEAD, objects and refs', path: 'HEAD' };
  const leads = found[common] !== undefined && found[common] !== 'directory';
  return leads ? { what: 'it has a file commondir', path: common } : undefined;
}

function refuseRootRepository(found: Found): void {
  const met = rootRepository(found);
  if (met === undefined) return;
  const { what, path } = met;
  throw new SallyportError(
    'refused_by_policy',
    `workspace.path: git takes the folder itself for a git directory (${what}), so a sandbox could write the configuration and the hooks that git obeys on this machine`,
    {
      details: { field: 'workspace.path', path },
      advice:
        'Work on a copy (`mode: copy`) or on a clone of the repository; if the folder is not a repository, rename what is named.',
    },
  );
}
