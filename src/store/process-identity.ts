/**
 * Which process a pid means. A pid alone is used again; with the time at which its process began it is not. The two
 * are only ever compared, so the time is kept as the system writes it.
 */

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { errno } from './state-failure.ts';

/** Undefined: there is no such process, or it is dead and only not buried yet. */
export function processStart(pid: number): string | undefined {
  return process.platform === 'linux' ? startOnLinux(pid) : startByPs(pid);
}

/** This process among all of this machine, and whether another still is. Undefined: it is of another machine, or of another start. */
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

function startOnLinux(pid: number): string | undefined {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  } catch (error) {
    // ESRCH: it died while it was read.
    if (errno(error) === 'ENOENT' || errno(error) === 'ESRCH') return undefined;
    throw error;
  }
  // The name, in parentheses, may itself contain spaces and parentheses.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const state = fields[0];
  if (state === 'Z' || state === 'X') return undefined;
  // Ticks count from the start of the machine, so they are worth something only together with which start that was.
  return `${bootId()}:${fields[19]}`;
}

function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim();
  } catch {
    return '';
  }
}

function startByPs(pid: number): string | undefined {
  try {
    const [state, ...start] = execFileSync('ps', ['-o', 'stat=,lstart=', '-p', String(pid)], {
      encoding: 'utf8',
      env: { PATH: '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' },
      stdio: ['ignore', 'pipe', 'ignore'],
    })
      .trim()
      .split(/\s+/);
    return state === undefined || state === '' || state.startsWith('Z') ? undefined : start.join(' ');
  } catch {
    // It exits with 1 when there is no such process.
    return undefined;
  }
}
