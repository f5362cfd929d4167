/**
 * Puts a guarded command on record from the process that runs it: through the daemon where one answers, else in the log itself,
 * which several processes may write.
 */

import type { GuardRecord } from '../protocol/guard.ts';
import { AuditFile } from '../store/audit.ts';

/** `post` is false where no daemon answers. */
export async function recordRun(
  stateDir: string,
  record: GuardRecord,
  post: (record: GuardRecord) => Promise<boolean>,
): Promise<void> {
  if (await post(record)) return;
  const file = new AuditFile(stateDir);
  try {
    file.append({ type: 'guard', ...record });
  } finally {
    file.close();
  }
}
