/** Installs packages of the distribution on this machine. Whoever calls it has asked the user first. */

import { readdir, readFile, stat } from 'node:fs/promises';
import type { Progress } from '../lib/progress.ts';
import { SallyportError } from '../protocol/errors.ts';
import { saysDiskFull, startProgram } from './child-program.ts';
import { missingPackages, recordInstalled } from './installed-packages.ts';

const listsFolder = '/var/lib/apt/lists';
const freshForMs = 24 * 60 * 60 * 1000;
const lockTimeoutSeconds = 120;

export interface InstallOptions {
  readonly progress: Progress;
  readonly signal?: AbortSignal;
}

export async function installPackages(packages: readonly string[], options: InstallOptions): Promise<void> {
  const what = packages.join(', ');
  if (!(await listsAreFresh())) await updateLists(options);
  const missing = await missingPackages(packages);
  const code = await aptGet(['install', '-y', '--no-install-recommends', '--', ...packages], options);
  if (code.exitCode === 0) return await recordInstalled(missing);
  const details = { packages, output: code.lastLines };
  if (saysDiskFull(code.lastLines)) {
    throw new SallyportError('disk_full', `no space left while installing ${what}`, { details });
  }
  throw new SallyportError(
    'setup_failed',
    `apt-get could not install ${what}: ${code.lastLines.slice(-3).join(' · ')}`,
    { details },
  );
}

/** Whether this machine's packages come from Debian or one of its children. */
export async function isDebianLike(): Promise<boolean> {
  try {
    return describesDebian(await readFile('/etc/os-release', 'utf8'));
  } catch {
    return false;
  }
}

export function describesDebian(osRelease: string): boolean {
  const values = osRelease
    .split('\n')
    .map((line) => /^ID(?:_LIKE)?=(.*)$/.exec(line.trim())?.[1] ?? '')
    .flatMap((value) => value.replace(/["']/g, '').split(/\s+/));
  return values.some((value) => value === 'debian' || value === 'ubuntu');
}

export function canInstall(): boolean {
  return process.getuid?.() === 0;
}

/** A failed update is not the end: another repository of this machine may be broken, and the packages still be there. */
async function updateLists(options: InstallOptions): Promise<void> {
  const { exitCode } = await aptGet(['update'], options);
  if (exitCode !== 0) {
    options.progress({ step: 'install', message: 'apt-get update failed; trying with the lists there are' });
  }
}

async function aptGet(args: readonly string[], { progress, signal }: InstallOptions) {
  const program = startProgram(
    'apt-get',
    ['-o', `DPkg::Lock::Timeout=${lockTimeoutSeconds}`, '-o', 'Dpkg::Use-Pty=0', '-q', ...args],
    {
      environment: { DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C.UTF-8' },
      onLine: (message) => progress({ step: 'install', message }),
      signal,
      // apt-get ends a download at once and lets a running dpkg finish, which a killed group would leave half-configured.
      stop: { signal: 'SIGINT', to: 'program' },
      graceMs: 60_000,
    },
  );
  try {
    const end = await program.ended;
    if (signal?.aborted === true)
      throw new SallyportError('cancelled', 'the installation of packages was cancelled');
    return end;
  } catch (error) {
    if (error instanceof SallyportError) throw error;
    throw new SallyportError('setup_impossible', 'apt-get could not be started', { cause: error });
  }
}

/** apt keeps the server's dates on the lists themselves; only their folder tells when they were fetched. */
async function listsAreFresh(): Promise<boolean> {
  try {
    const names = await readdir(listsFolder);
    if (!names.some((name) => /_Packages(\.|$)/.test(name))) return false;
    const [folder, partial] = await Promise.all([stat(listsFolder), stat(`${listsFolder}/partial`)]);
    return Date.now() - Math.max(folder.mtimeMs, partial.mtimeMs) < freshForMs;
  } catch {
    return false;
  }
}
