/**
 * Looks at the places that bubblewrap will mount something at, in folders that a box has written to.
 *
 * SECURITY: bubblewrap makes what is missing there, and follows links while the whole host is within its reach: a link that the
 * box left would have a file or a folder made anywhere the box's user may write. Nothing of the box may run any more.
 */

import { lstatSync } from 'node:fs';
import { join } from 'node:path';
import { OpenFolder } from '../../lib/open-folder.ts';
import type { BoxMount } from '../../protocol/box.ts';
import { SallyportError } from '../../protocol/errors.ts';
import type { BoxPart } from './box-arguments.ts';

/** Throws where a link, or something else that is not a folder, is on the way to a target or at it. */
export function requirePlainPlaces(
  { id, folder }: { readonly id: string; readonly folder: string },
  parts: readonly BoxPart[],
  mounts: readonly BoxMount[],
): void {
  for (const { target } of mounts) {
    const part = parts.find((each) => each.kind === 'directory' && target.startsWith(`${each.target}/`));
    if (part === undefined) continue;
    const names = target.slice(part.target.length + 1).split('/');
    const odd = firstOdd(join(folder, part.from), names);
    if (odd === undefined) continue;
    const path = join(part.target, ...names.slice(0, odd + 1));
    throw new SallyportError(
      'engine_conflict',
      `box ${id}: ${path} inside is a link or no folder, and ${target} is to be mounted there`,
      {
        details: { box: id, path, target },
        advice:
          'A program inside put it there. Remove the sandbox (`sally rm --force <name>`) and make it again.',
      },
    );
  }
}

/** Which of the names is in the way, or cannot be looked at; undefined: none. What is not there is no harm. */
function firstOdd(root: string, names: readonly string[]): number | undefined {
  const chain: OpenFolder[] = [];
  try {
    let above = OpenFolder.real(root);
    chain.push(above);
    for (const [index, name] of names.entries()) {
      const kind = kindAt(above, name);
      if (kind === 'absent') return undefined;
      const isLast = index === names.length - 1;
      if (kind === 'odd' || (kind === 'other' && !isLast)) return index;
      if (isLast) return undefined;
      above = above.enter(Buffer.from(name));
      chain.push(above);
    }
    return undefined;
  } catch {
    // A folder that its owner closed to himself.
    return Math.max(0, chain.length - 1);
  } finally {
    for (const folder of chain) folder.close();
  }
}

function kindAt(folder: OpenFolder, name: string): 'absent' | 'directory' | 'odd' | 'other' {
  const facts = lstatSync(folder.child(Buffer.from(name)), { throwIfNoEntry: false });
  if (facts === undefined) return 'absent';
  if (facts.isSymbolicLink()) return 'odd';
  return facts.isDirectory() ? 'directory' : 'other';
}
