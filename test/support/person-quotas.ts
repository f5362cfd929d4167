/** What the kernel counts by user (`test/security/quotas.c`), tried as a person outside of any sandbox. */

import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import { temporaryFolder } from './little-engine.ts';

const asPerson = (uid: number) => ['--reuid', String(uid), '--regid', String(uid), '--clear-groups'];
export const EMFILE = 24;
export const wholePipe = 65_536;
/** With nothing taken. */
export const allQuotas = { instance: 0, watch: 0, epoll: 0, pipe: wholePipe, signal: 0, queue: 0, right: 0 };

/** The person's folder, with the program in it. */
export function folderOfPerson(uid: number): string {
  const folder = temporaryFolder();
  chmodSync(folder, 0o755);
  chownSync(folder, uid, uid);
  const source = fileURLToPath(new URL('../security/quotas.c', import.meta.url));
  execFileSync('gcc', ['-static', '-Os', '-o', join(folder, 'quotas'), source]);
  return folder;
}

export const readQuotas = (text: string): Readonly<Record<string, number>> =>
  Object.fromEntries(
    text
      .trim()
      .split('\n')
      .map((line) => line.split(' '))
      .map(([what = '', result]) => [what, Number(result)]),
  );

/** With as many descriptors as a desktop gives by default. */
export function tryOutside(uid: number, folder: string): Readonly<Record<string, number>> {
  const argv = [...asPerson(uid), 'prlimit', '--nofile=1024:1024', join(folder, 'quotas'), 'try', folder];
  return readQuotas(execFileSync('setpriv', argv, { encoding: 'utf8' }));
}

/** How many it got. It keeps them until the end of the test. */
export async function hoardOutside(uid: number, folder: string, what: string): Promise<number> {
  const child = spawn('setpriv', [...asPerson(uid), join(folder, 'quotas'), 'hoard', what, folder], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const [said] = await once(child.stdout, 'data');
  return Number(String(said).split(' ')[0]);
}
