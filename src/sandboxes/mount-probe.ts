/**
 * Whether a running box still has what is at its paths on the host (G2). What was mounted was compared with the host when the box
 * started, and a mount never changes what it shows; so it is enough to look whether the host still has the same thing there.
 *
 * A folder that was removed and made again leaves the box with the old one. A protected file that was replaced on the host
 * takes its mount with it, and could be written to inside; so does a folder that one of the sandbox's own is mounted on. Reads only.
 */

import { lstat } from 'node:fs/promises';
import { identityOf } from './pinned-sources.ts';
import type { SandboxRecord } from './records.ts';

export interface StaleMount {
  readonly source: string;
  readonly target: string;
  readonly how: 'gone' | 'replaced';
}

type Probed = Pick<SandboxRecord, 'plan' | 'sources'>;

/** The mounts that are not what they were. */
export async function findStaleMounts(record: Probed): Promise<readonly StaleMount[]> {
  const { mounts, covered = [] } = record.plan;
  const looked = await Promise.all([...mounts, ...covered].map((mount) => look(mount, record)));
  return looked.filter((found) => found !== undefined);
}

/** The same for the workspace alone, which is one look. */
export async function findStaleWorkspace(record: Probed): Promise<StaleMount | undefined> {
  const [first] = record.plan.mounts;
  return first === undefined ? undefined : await look(first, record);
}

async function look(
  { source, target }: { readonly source: string; readonly target: string },
  { sources = {} }: Probed,
): Promise<StaleMount | undefined> {
  const mounted = sources[source];
  if (mounted === undefined) return undefined;
  try {
    const now = identityOf(await lstat(source, { bigint: true }));
    return now === mounted ? undefined : { source, target, how: 'replaced' };
  } catch (error) {
    // What cannot be looked at, as a mount that does not answer, is no proof of anything.
    const { code } = error as NodeJS.ErrnoException;
    return code === 'ENOENT' || code === 'ENOTDIR' ? { source, target, how: 'gone' } : undefined;
  }
}
