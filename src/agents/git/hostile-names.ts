/**
 * What git itself does not refuse in names that were made inside a sandbox, and a later checkout or listing would suffer from. Pure.
 */

import { isGitPath } from '../../policy/protected-names.ts';

/** SECURITY: some file systems take names for the same that differ in case or in characters that nobody sees. */
const folded = (name: string): string => name.normalize('NFKC').replace(/\p{C}/gu, '').toLowerCase();

/** Why a branch of a sandbox gets no reference here; undefined: it may. `check-ref-format` is asked besides. */
export function unwantedReference(name: string, taken: ReadonlySet<string>): string | undefined {
  if (/\p{C}|\ufffd/u.test(name)) return 'its name has characters that nobody sees';
  const parts = name.split('/');
  if (parts.some((part) => part.startsWith('-'))) return 'its name would be taken for an option';
  if (parts.some((part) => Buffer.byteLength(part) > 200)) return 'its name is too long';
  if (isGitPath(Buffer.from(name))) return 'its name has .git in it';
  return taken.has(folded(name)) ? 'its name differs from another one only in case' : undefined;
}

export const foldedName = folded;

export interface TreePath {
  readonly mode: string;
  readonly object: string;
  readonly path: string;
}

/** Of `git ls-tree -r -z --full-tree`, each as latin1. */
export function readTreePath(entry: string): TreePath {
  const tab = entry.indexOf('\t');
  const [mode = '', , object = ''] = entry.slice(0, tab).split(' ');
  return { mode, object, path: Buffer.from(entry.slice(tab + 1), 'latin1').toString('utf8') };
}

/** Of `git diff-tree -r -z --raw --no-abbrev`: what there is after each change. */
export function readRawChanges(fields: readonly string[]): readonly TreePath[] {
  const paths: TreePath[] = [];
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const [, mode = '', , object = ''] = (fields[at] ?? '').split(' ');
    const path = Buffer.from(fields[at + 1] ?? '', 'latin1').toString('utf8');
    if (mode !== '000000') paths.push({ mode, object, path });
  }
  return paths;
}

/**
 * A link that another path leads through on a file system that ignores case: a checkout there writes to where the link leads.
 * Undefined: there is none.
 */
export function linkInTheWay(paths: readonly TreePath[]): string | undefined {
  const links = new Map(
    paths.filter(({ mode }) => mode === '120000').map(({ path }) => [folded(path), path]),
  );
  if (links.size === 0) return undefined;
  for (const { path } of paths) {
    const parts = path.split('/');
    for (let length = 1; length <= parts.length; length++) {
      const start = parts.slice(0, length).join('/');
      const link = links.get(folded(start));
      // The very same name is no other file there than here: git knows that it is a link, or that it was one.
      if (link !== undefined && link !== start) return link;
    }
  }
  return undefined;
}

/** A link that leads to a repository's own folder. */
export const leadsToGit = (target: Buffer): boolean => isGitPath(target);
