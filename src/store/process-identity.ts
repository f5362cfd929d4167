/** This process among all processes of this machine, and whether another one still runs. */

import { bootId, processStart } from '../lib/process-start.ts';

/** `isAlive` is undefined for a process of another machine, or of another start of this one. */
export function processHolder(): {
  readonly self: string;
  isAlive(holder: string): boolean | undefined;
} {
  const machine = bootId();
  return {
    self: `${machine} ${process.pid} ${processStart(process.pid) ?? ''}`,
    isAlive: (holder) => {
      const [where, pid, ...start] = holder.split(' ');
      if (where !== machine || machine === '') return undefined;
      return processStart(Number(pid)) === start.join(' ');
    },
  };
}
