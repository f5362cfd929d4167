/**
 * Finds the folders that changes of a sandbox would make into git directories, or would change as such. Git runs programs that the
 * configuration and the hooks of such a folder name, whatever the folder is called.
 */

import { Turns } from '../lib/turns.ts';
import { foldedName, gitShape, isGitDirectory } from '../policy/protected-names.ts';
import type { HostFolder } from './host-folder.ts';
import type { WorkspaceChange } from './workspace-changes.ts';

const shapes: Readonly<Record<string, string>> = {
  [gitShape.head]: 'HEAD',
  [gitShape.objects]: 'objects',
  [gitShape.refs]: 'refs',
  [gitShape.common]: 'commondir',
};
/** What makes a folder a git directory, and what git obeys in one. */
const parts: ReadonlySet<string> = new Set([
  ...Object.keys(shapes),
  'config',
  'config.worktree',
  'hooks',
  'info',
  // What git is in the middle of: going on with it runs the commands that it lists.
  'rebase-merge',
  'rebase-apply',
  'sequencer',
]);

/** Says of a path whether it is a part of such a folder. */
export async function gitDirectoryParts(
  host: HostFolder,
  changes: readonly WorkspaceChange[],
): Promise<(path: Buffer) => boolean> {
  const candidates = new Map<string, Set<string>>();
  const turns = new Turns();
  for (const { pathBytes, after } of changes) {
    await turns.take();
    if (after === undefined) continue;
    for (const { folder, name } of steps(pathBytes)) {
      if (!parts.has(name)) continue;
      const names = candidates.get(folder) ?? new Set();
      candidates.set(folder, names.add(name));
    }
  }
  const found = new Set<string>();
  for (const [folder, names] of candidates) {
    for (const [folded, name] of Object.entries(shapes))
      if (!names.has(folded) && (await isThere(host, `${folder}${name}`))) names.add(folded);
    if (isGitDirectory((name) => names.has(name))) found.add(folder);
  }
  return (path) => {
    if (found.size === 0) return false;
    for (const { folder, name } of steps(path)) if (parts.has(name) && found.has(folder)) return true;
    return false;
  };
}

async function isThere(host: HostFolder, path: string): Promise<boolean> {
  const { kind } = await host.look(Buffer.from(path, 'latin1'));
  return kind !== 'absent' && kind !== 'blocked';
}

/** Each folder above a path, as latin1 with a slash at its end, and what comes next, folded. */
function* steps(path: Buffer): Generator<{ readonly folder: string; readonly name: string }> {
  const text = path.toString('latin1');
  for (let from = 0; from <= text.length; ) {
    const slash = text.indexOf('/', from);
    const end = slash < 0 ? text.length : slash;
    const name = foldedName(Buffer.from(text.slice(from, end), 'latin1').toString('utf8'));
    yield { folder: text.slice(0, from), name };
    from = end + 1;
  }
}
