/** Named points at which a test lets the process die as by `kill -9`. Without `SALLYPORT_CRASH_AT` passing one does nothing. */

import type { CrashPoint } from './config.ts';

export type Checkpoint = (name: string) => void;

export function checkpoints(
  crashAt: CrashPoint | undefined,
  die: () => void = () => process.kill(process.pid, 'SIGKILL'),
): Checkpoint {
  if (crashAt === undefined) return () => {};
  let left = crashAt.passing;
  return (name) => {
    if (name !== crashAt.name || --left !== 0) return;
    die();
  };
}
