/** The changes of a copied workspace as patches in git's format, one path after the other. */

import { setMaxListeners } from 'node:events';
import { type FilePatch, filePatch, type PatchSide } from '../lib/git-patch.ts';
import { Turns } from '../lib/turns.ts';
import { isGitPath } from '../policy/protected-names.ts';
import type { ChangeCalls, ChangeSide, WorkspaceChange, WorkspaceChanges } from './workspace-changes.ts';

export interface FileDiff extends FilePatch {
  readonly change: WorkspaceChange;
}

/** What is larger is not shown: both sides of a file, the patch and what is fetched ahead are in memory. */
const mostShownBytes = 8 * 2 ** 20;

/** Small files are mostly waited for. */
const fetchedAhead = 7;

/** Both sides of a change: what its patch is made of. */
interface Fetched {
  readonly change: WorkspaceChange;
  readonly before: PatchSide | undefined;
  readonly after: PatchSide | undefined;
}

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
  const fetch = async (change: WorkspaceChange): Promise<Fetched> => {
    const [before, after] = await Promise.all([
      sideOf(change.before, async () => await calls.base(change.pathBytes, options)),
      sideOf(change.after, async () => {
        const chunks: Buffer[] = [];
        for await (const chunk of calls.inside(target, change, options)) chunks.push(chunk);
        return Buffer.concat(chunks);
      }),
    ]);
    return { change, before, after };
  };
  const turns = new Turns();
  // One patch at a time, when it is wanted: several at once would be computed in one go, and no signal heard meanwhile.
  const patchOf = async (waiting: Promise<Fetched>): Promise<FileDiff> => {
    const { change, before, after } = await waiting;
    await turns.listen();
    options.signal?.throwIfAborted();
    return { change, ...(await filePatch(change.pathBytes, before, after)) };
  };
  // Each request listens, and they are more than Node takes for a leak.
  if (options.signal !== undefined) setMaxListeners(0, options.signal);
  const waiting: Promise<Fetched>[] = [];
  try {
    for (const change of changes.filter(isInPatch)) {
      const work = fetch(change);
      // A failure is told when it is its turn.
      work.catch(() => {});
      waiting.push(work);
      const first = waiting.length > fetchedAhead ? waiting.shift() : undefined;
      if (first !== undefined) yield await patchOf(first);
    }
    for (let first = waiting.shift(); first !== undefined; first = waiting.shift())
      yield await patchOf(first);
  } finally {
    // Nobody waits for the rest of them.
    await Promise.allSettled(waiting);
  }
}

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
