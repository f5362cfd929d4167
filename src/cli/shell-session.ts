/**
 * Whose remembered approvals count for a command line: those of the shell that called it. A pid alone would do for the next process
 * that gets the number.
 */

import { randomBytes } from 'node:crypto';
import { processStart } from '../lib/process-start.ts';

const init = 1;

/** `pid`: of the calling process. Where that is gone, or is what takes in orphans, nothing is remembered. */
export function shellSession(pid: number): string {
  const start = pid === init ? undefined : processStart(pid);
  return start === undefined ? `nobody ${randomBytes(8).toString('hex')}` : `shell ${pid} ${start}`;
}
