/**
 * When a process began. A pid alone is used again; together with this time it is not. The two are only ever compared, so
 * the time is kept as the system writes it.
 */

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** Undefined: there is no such process, or it is dead and not reaped yet. */
export function processStart(pid: number): string | undefined {
  return process.platform === 'linux' ? startOnLinux(pid) : startByPs(pid);
}

function startOnLinux(pid: number): string | undefined {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  } catch (error) {
    // ESRCH: it died while it was read.
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ESRCH') return undefined;
    throw error;
  }
  // The name, in parentheses, may itself contain spaces and parentheses.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const state = fields[0];
  if (state === 'Z' || state === 'X') return undefined;
  // Ticks count from the start of the machine, so they are worth something only together with which start that was.
  return `${bootId()}:${fields[19]}`;
}

/** Empty on systems that have none. */
export function bootId(): string {
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
  } catch (error) {
    // `ps` exits with 1 when there is no such process. A `ps` that could not be run says nothing about it.
    if (typeof (error as { status?: unknown }).status === 'number') return undefined;
    throw error;
  }
}
