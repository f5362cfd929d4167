/**
 * Puts a guarded command on record from the process that runs it: through the daemon where one runs, else into the log
 * itself. Then it holds the lock of the state folder, as a daemon would, so the log has one writer at any time.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { SallyportError } from '../protocol/errors.ts';
import type { GuardRecord } from '../protocol/guard.ts';
import { AuditFile } from '../store/audit.ts';
import { takeLock } from '../store/instance-lock.ts';

const deadlineMs = 10_000;
const pauseMs = 25;

/** `post` is false where no daemon answers. */
export async function recordRun(
  stateDir: string,
  record: GuardRecord,
  post: (record: GuardRecord) => Promise<boolean>,
): Promise<void> {
  const end = performance.now() + deadlineMs;
  while (performance.now() < end) {
    if (await post(record)) return;
    const lock = await takeLock(stateDir);
    if (!('heldBy' in lock)) {
      try {
        const file = new AuditFile(stateDir);
        file.append({ type: 'guard', ...record });
        file.close();
      } finally {
        lock.release();
      }
      return;
    }
    // A daemon that is about to listen or about to end, or another run at this very moment.
    await sleep(pauseMs);
  }
  throw new SallyportError('state_failed', `the audit log in ${stateDir} could not be written`, {
    details: { stateDir },
  });
}
