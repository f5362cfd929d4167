/** How long what is not used any more is kept. */

import { stat } from 'node:fs/promises';
import type { SandboxRecord } from './records.ts';

const day = 86_400_000;
const stoppedMs = 15 * day;
const failedMs = day;
export const retentionCheckMs = 3_600_000;

type Retained = Pick<SandboxRecord, 'state' | 'stoppedAt' | 'createdAt'>;

/** Why it may go now; undefined: it stays. */
export function retentionReason(record: Retained, nowMs: number, olderThanMs?: number): string | undefined {
  const since = nowMs - Date.parse(record.stoppedAt ?? record.createdAt);
  if (olderThanMs !== undefined && since > olderThanMs) {
    if (record.state === 'STOPPED') return `stopped at ${record.stoppedAt ?? record.createdAt}`;
    if (record.state === 'FAILED') return `failed at ${record.stoppedAt ?? record.createdAt}`;
  }
  if (record.state === 'STOPPED' && since > stoppedMs) return 'stopped for more than 15 days';
  if (record.state === 'FAILED' && since > failedMs) return 'failed more than a day ago';
  return undefined;
}

/** R5: a sandbox whose workspace is gone has nothing to work on. */
export async function pruneReason({ spec }: Pick<SandboxRecord, 'spec'>): Promise<string | undefined> {
  const path = spec.workspace?.path;
  if (path === undefined) return undefined;
  try {
    await stat(path);
    return undefined;
  } catch (error) {
    // Anything else, such as a mount that does not answer, is no proof that it is gone.
    const gone = (error as NodeJS.ErrnoException).code === 'ENOENT';
    return gone ? `its workspace ${path} is gone` : undefined;
  }
}
