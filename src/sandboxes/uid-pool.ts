/** A uid for a sandbox without a workspace, that no other sandbox of this owner has. */

import { createHash } from 'node:crypto';
import { firstPoolUid, poolSize } from '../policy/profiles.ts';
import { SallyportError } from '../protocol/errors.ts';

/** Each owner begins at a place of its own, so that two owners on one engine seldom share one. */
export function freeUid(owner: string, used: ReadonlySet<number>): number {
  const start = createHash('sha256').update(owner).digest().readUInt16BE() % poolSize;
  for (let step = 0; step < poolSize; step++) {
    const uid = firstPoolUid + ((start + step) % poolSize);
    if (!used.has(uid)) return uid;
  }
  throw new SallyportError(
    'sandbox_limit',
    `there are ${poolSize} sandboxes, and each has a user of its own`,
    {
      details: { most: poolSize },
    },
  );
}
