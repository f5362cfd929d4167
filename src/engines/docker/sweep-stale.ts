/** Takes away containers that were created and never started, because the process that made them was killed in between. */

import { label, type OwnedKind } from '../../protocol/labels.ts';
import { type ListedContainer, listContainers } from './containers/list.ts';
import { removeContainer } from './containers/remove.ts';
import type { EngineConnection } from './wire/connection.ts';

const ofKind = (kind: OwnedKind): string => `${label.kind}=${kind}`;

/** Helpers belong to nobody; a box only to its owner. What started is never touched here. */
export async function sweepStale(
  connection: EngineConnection,
  owner: string,
  olderThanMs: number,
): Promise<number> {
  const candidates = [
    ...(await listContainers(connection, [`${label.owned}=true`, ofKind('porter-filler')])),
    ...(await listContainers(connection, [`${label.owned}=true`, ofKind('image-draft')])),
    ...(await listContainers(connection, [
      `${label.owned}=true`,
      ofKind('sandbox'),
      `${label.owner}=${owner}`,
    ])),
  ];
  const stale = candidates.filter((container) => isStale(container, Date.now(), olderThanMs));
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
