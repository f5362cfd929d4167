/** Takes away helpers that were created and never started, because the process that made them was killed in between. */

import { label, type OwnedKind } from '../../protocol/labels.ts';
import { type ListedContainer, listContainers } from './containers/list.ts';
import { removeContainer } from './containers/remove.ts';
import type { EngineConnection } from './wire/connection.ts';

/** No record names them, so any daemon may. Boxes are the affair of the daemon that has their records. */
const helpers: readonly OwnedKind[] = ['porter-filler', 'image-draft', 'image-check', 'runtime-check'];

export async function sweepStale(connection: EngineConnection, olderThanMs: number): Promise<number> {
  const found = await Promise.all(
    helpers.map((kind) => listContainers(connection, [`${label.owned}=true`, `${label.kind}=${kind}`])),
  );
  const stale = found.flat().filter((container) => isStale(container, Date.now(), olderThanMs));
  await Promise.all(stale.map(({ id }) => removeContainer(connection, id)));
  return stale.length;
}

export function isStale(
  container: Pick<ListedContainer, 'state' | 'createdSeconds'>,
  nowMs: number,
  olderThanMs: number,
): boolean {
  return container.state === 'created' && nowMs - container.createdSeconds * 1000 > olderThanMs;
}
