/** Looks at paths of the host, so that `policy/` can judge them. */

import type { Stats } from 'node:fs';
import { lstat, readlink } from 'node:fs/promises';
import { dirname, isAbsolute, join } from 'node:path';
import type { PathFacts } from '../policy/box-plan.ts';
import { SallyportError } from '../protocol/errors.ts';

type Kinds = Pick<Stats, 'isFile' | 'isDirectory' | 'isSymbolicLink'>;

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
  const way = await orMissing(followed(path));
  const target = way === undefined ? undefined : await orMissing(lstat(way.real));
  if (way === undefined || target === undefined) return { ...missing, kind: kindOf(own) };
  const realKind = kindOf(target);
  return {
    kind: kindOf(own),
    ...way,
    realKind: realKind === 'symlink' ? 'other' : realKind,
    uid: target.uid,
    gid: target.gid,
  };
}

const mostLinks = 40;

/**
 * SECURITY: part by part and not by `realpath`, so that whether a link was on the way is known of the very way that was taken, also
 * while a sandbox swaps a folder for a link.
 */
async function followed(path: string): Promise<Pick<PathFacts, 'real' | 'link'>> {
  let real = '/';
  let link: string | undefined;
  let ahead = partsOf(path);
  for (let links = 0; ahead.length > 0; ) {
    const [name = '', ...rest] = ahead;
    const at = name === '..' ? dirname(real) : join(real, name);
    const facts = await lstat(at);
    if (!facts.isSymbolicLink()) {
      real = at;
      ahead = rest;
      continue;
    }
    if (++links > mostLinks) throw new Error(`too many links on the way to ${path}`);
    if (facts.uid !== 0) link ??= at;
    const target = await readlink(at);
    if (isAbsolute(target)) real = '/';
    ahead = [...partsOf(target), ...rest];
  }
  return { real, ...(link === undefined ? {} : { link }) };
}

const partsOf = (path: string): readonly string[] =>
  path.split('/').filter((part) => part !== '' && part !== '.');

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
