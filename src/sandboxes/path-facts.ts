/** Looks at paths of the host, so that `policy/` can judge them. */

import { lstat, realpath, stat } from 'node:fs/promises';
import { isAbsolute } from 'node:path';
import type { PathFacts } from '../policy/box-plan.ts';
import { SallyportError } from '../protocol/errors.ts';

type Kinds = Pick<Awaited<ReturnType<typeof stat>>, 'isFile' | 'isDirectory' | 'isSymbolicLink'>;

export async function pathFacts(field: string, path: string): Promise<PathFacts> {
  if (!isAbsolute(path)) {
    throw new SallyportError('refused_by_policy', `${field}: ${path} is not absolute`, {
      details: { field, path },
      advice: 'Give the whole path: the daemon has a working directory of its own.',
    });
  }
  const missing: PathFacts = { kind: 'missing', real: path, realKind: 'missing', uid: -1, gid: -1 };
  const own = await orMissing(lstat(path));
  if (own === undefined) return missing;
  const real = await orMissing(realpath(path));
  const target = real === undefined ? undefined : await orMissing(stat(real));
  if (real === undefined || target === undefined) return { ...missing, kind: kindOf(own) };
  const realKind = kindOf(target);
  return {
    kind: kindOf(own),
    real,
    realKind: realKind === 'symlink' ? 'other' : realKind,
    uid: target.uid,
    gid: target.gid,
  };
}

export function kindOf(facts: Kinds): 'file' | 'directory' | 'symlink' | 'other' {
  if (facts.isSymbolicLink()) return 'symlink';
  if (facts.isDirectory()) return 'directory';
  return facts.isFile() ? 'file' : 'other';
}

/** What may not be looked at counts as missing: it could not be mounted either. */
async function orMissing<T>(look: Promise<T>): Promise<T | undefined> {
  try {
    return await look;
  } catch {
    return undefined;
  }
}
