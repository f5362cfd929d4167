/**
 * Links in what is copied (A5). Pure, by the text of paths: a link is never followed to decide, and never followed to copy.
 * One that stays inside keeps its text, or gets a relative one where its own would mean something else inside.
 */

import { posix } from 'node:path';
import { isWithin } from './paths.ts';

/**
 * The text that the link gets; undefined: it leads out of the tree. `root` is absolute, `path` is that of the link below it. Names
 * are bytes, one character each.
 */
export function linkText(root: string, path: string, target: string): string | undefined {
  const folder = posix.dirname(path);
  const reached = posix.resolve(root, folder, target);
  if (!isWithin(reached, root)) return undefined;
  if (!target.startsWith('/') && staysInside(folder, target)) return target;
  return relativeLink(root, path, reached);
}

/** From a link at `path` to `reached`, which is inside. */
export function relativeLink(root: string, path: string, reached: string): string {
  return posix.relative(posix.join(root, posix.dirname(path)), reached) || '.';
}

/** `../project/file` comes back into a tree whose name is `project` here, and may be another there. */
function staysInside(folder: string, target: string): boolean {
  let depth = folder === '.' ? 0 : folder.split('/').length;
  for (const part of target.split('/')) {
    if (part === '' || part === '.') continue;
    depth += part === '..' ? -1 : 1;
    if (depth < 0) return false;
  }
  return true;
}
