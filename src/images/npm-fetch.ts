/**
 * Fetches the npm packages of a template with this machine's own npm, so that its registry, proxy and trust apply, and hands
 * them to a build as a folder.
 *
 * SECURITY: no install script runs, and every package must have the hash that the template's lock file names. Nothing of
 * npm's settings goes into the folder that is handed on: a token for the registry is the host's business.
 */

import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Progress } from '../lib/progress.ts';
import { SallyportError } from '../protocol/errors.ts';
import { saysDiskFull, startProgram } from './child-program.ts';
import type { NpmPackages } from './template.ts';

export interface FetchOptions {
  readonly architecture: string;
  readonly progress: Progress;
  readonly signal?: AbortSignal | undefined;
  readonly tempDir?: string | undefined;
}

export interface FetchedPackages {
  /** Holds `node_modules`. */
  readonly folder: string;
  readonly remove: () => Promise<void>;
}

/** npm's names for what Debian calls otherwise. */
const cpus: Readonly<Record<string, string>> = { amd64: 'x64', arm64: 'arm64' };

/** Where npm writes down the addresses it fetched from, which may hold a password. */
const leftOut = /(^|\/)(\.package-lock\.json|\.npmrc|\.cache)$/;

export const isForTheImage = (path: string): boolean => !leftOut.test(path);

export async function fetchPackages(
  { manifest, lock }: NpmPackages,
  options: FetchOptions,
): Promise<FetchedPackages> {
  const cpu = cpus[options.architecture];
  if (cpu === undefined) {
    throw new SallyportError('npm_failed', `npm has no packages for ${options.architecture}`, {
      advice: 'Use an engine on amd64 or arm64.',
    });
  }
  const folder = await mkdtemp(join(options.tempDir ?? tmpdir(), 'sallyport-npm-'));
  const remove = (): Promise<void> => rm(folder, { recursive: true, force: true });
  try {
    await mkdir(join(folder, 'node_modules'));
    await writeFile(join(folder, 'package.json'), manifest);
    await writeFile(join(folder, 'package-lock.json'), lock);
    await installLocked(folder, cpu, options);
    return { folder, remove };
  } catch (error) {
    await remove();
    throw error;
  }
}

async function installLocked(folder: string, cpu: string, { progress, signal }: FetchOptions): Promise<void> {
  progress({ step: 'fetch', message: "fetching npm packages with this machine's npm" });
  const program = startProgram(
    'npm',
    [
      'ci',
      `--prefix=${folder}`,
      '--ignore-scripts',
      '--omit=dev',
      '--no-audit',
      '--no-fund',
      '--no-update-notifier',
      '--os=linux',
      '--libc=glibc',
      `--cpu=${cpu}`,
    ],
    {
      // This machine's Node.js does not run them; the image's does.
      environment: { npm_config_engine_strict: 'false' },
      onLine: (message) => progress({ step: 'fetch', message }),
      signal,
      stop: { signal: 'SIGTERM', to: 'group' },
    },
  );
  const end = await program.ended;
  if (signal?.aborted === true) throw new SallyportError('cancelled', 'fetching npm packages was cancelled');
  if (end.exitCode === 0) return;
  const details = { output: end.lastLines };
  if (saysDiskFull(end.lastLines)) {
    throw new SallyportError('disk_full', 'no space left while fetching npm packages', { details });
  }
  // `env`, which starts it, says so when there is no such program.
  if (end.exitCode === 127) {
    throw new SallyportError('npm_failed', 'npm is not installed on this machine', {
      details,
      advice: 'Install Node.js with npm, then try again; the template gets its agent from there.',
    });
  }
  const complaints = end.lastLines.filter((line) => /npm (error|ERR!)/i.test(line));
  throw new SallyportError('npm_failed', `npm failed: ${complaints.slice(0, 3).join(' · ')}`, { details });
}
