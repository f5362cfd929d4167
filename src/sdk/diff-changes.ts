/** The changes of a copied workspace as patches in git's format, one path after the other. */

import { setMaxListeners } from 'node:events';
import { type FilePatch, filePatch, type PatchSide } from '../lib/git-patch.ts';
import { isGitPath } from '../policy/protected-names.ts';
import type { ChangeCalls, ChangeSide, WorkspaceChange, WorkspaceChanges } from './workspace-changes.ts';

export interface FileDiff extends FilePatch {
  readonly change: WorkspaceChange;
}

/** What is larger is not shown: both sides and the patch are in memory. */
const mostShownBytes = 64 * 2 ** 20;

/** Small files are mostly waited for. */
const fetchedAhead = 7;

/** A folder, a pipe and the repository itself are no part of a patch. */
export function isInPatch({ pathBytes, before, after }: WorkspaceChange): boolean {
  return (
    !isGitPath(pathBytes) && [before, after].some((side) => side?.kind === 'file' || side?.kind === 'symlink')
  );
}

export async function* diffChanges(
  calls: ChangeCalls,
  { target, changes }: WorkspaceChanges,
  options: { readonly signal?: AbortSignal } = {},
): AsyncGenerator<FileDiff> {
  const diffOf = async (change: WorkspaceChange): Promise<FileDiff> => {
    const [before, after] = await Promise.all([
      sideOf(change.before, async () => await calls.base(change.pathBytes, options)),
      sideOf(change.after, async () => {
        const chunks: Buffer[] = [];
        for await (const chunk of calls.inside(target, change, options)) chunks.push(chunk);
        return Buffer.concat(chunks);
      }),
    ]);
    return { change, ...filePatch(change.pathBytes, before, after) };
  };
  // Each request listens, and they are more than Node takes for a leak.
  if (options.signal !== undefined) setMaxListeners(0, options.signal);
  const waiting: Promise<FileDiff>[] = [];
  try {
    for (const change of changes.filter(isInPatch)) {
      const work = diffOf(change);
      // A failure is told when it is its turn.
      work.catch(() => {});
      waiting.push(work);
      if (waiting.length > fetchedAhead) yield await next(waiting);
    }
    while (waiting.length > 0) yield await next(waiting);
  } finally {
    // Nobody waits for the rest of them.
    await Promise.allSettled(waiting);
  }
}

const next = async (waiting: Promise<FileDiff>[]): Promise<FileDiff> =>
  await (waiting.shift() as Promise<FileDiff>);

async function sideOf(
  side: ChangeSide | undefined,
  content: () => Promise<Buffer>,
): Promise<PatchSide | undefined> {
  if (side?.kind === 'symlink') return { mode: '120000', content: side.linkTarget };
  if (side?.kind !== 'file') return undefined;
  const mode = ((side.mode ?? 0) & 0o100) === 0 ? '100644' : '100755';
  const isShown = (side.size ?? 0) <= mostShownBytes && side.kept !== false && side.compared !== false;
  return { mode, content: isShown ? await content() : undefined };
}
