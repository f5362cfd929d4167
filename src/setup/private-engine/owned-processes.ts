/**
 * Which processes belong to the private engine. Only what is found here is ever signalled.
 *
 * SECURITY: a command line can be forged by whoever runs a process, also inside a container. Ours run as root in our own
 * pid namespace, which no sandbox does.
 */

import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { listProcesses, type ProcessFacts, readProcess } from '../processes.ts';
import type { PrivateEnginePaths } from './paths.ts';

type Shown = Pick<ProcessFacts, 'argv' | 'uid' | 'inOurPidNamespace'>;

function optionIs(argv: readonly string[], names: readonly string[], value: string): boolean {
  return argv.some(
    (argument, index) =>
      names.some((name) => argument === `${name}=${value}`) ||
      (names.includes(argument) && argv[index + 1] === value),
  );
}

function isTrusted(process: Shown): boolean {
  return process.uid === 0 && process.inOurPidNamespace;
}

export function isOurDaemon(process: Shown, paths: PrivateEnginePaths): boolean {
  const { argv } = process;
  return (
    isTrusted(process) &&
    basename(argv[0] ?? '') === 'dockerd' &&
    optionIs(argv, ['--pidfile', '-p'], paths.pidFile) &&
    optionIs(argv, ['--host', '-H'], `unix://${paths.socket}`)
  );
}

export function isOurContainerd(process: Shown, paths: PrivateEnginePaths): boolean {
  return (
    isTrusted(process) &&
    basename(process.argv[0] ?? '') === 'containerd' &&
    optionIs(process.argv, ['--config', '-c'], `${paths.execRoot}/containerd/containerd.toml`)
  );
}

export function isOurShim(process: Shown, paths: PrivateEnginePaths): boolean {
  return (
    isTrusted(process) &&
    basename(process.argv[0] ?? '').startsWith('containerd-shim') &&
    optionIs(process.argv, ['-address', '--address'], `${paths.execRoot}/containerd/containerd.sock`)
  );
}

/** The running dockerd: by its pidfile, or by a search when the pidfile is missing, stale or names a reused pid. */
export async function findDaemon(paths: PrivateEnginePaths): Promise<ProcessFacts | undefined> {
  const text = await readFile(paths.pidFile, 'utf8').catch(() => '');
  const named = await readProcess(Number(text.trim()));
  if (named !== undefined && isOurDaemon(named, paths)) return named;
  return (await listProcesses()).find((process) => isOurDaemon(process, paths));
}

/** What a dockerd that did not end by itself leaves running: containerd, then the shims and the containers they hold. */
export async function findLeftovers(paths: PrivateEnginePaths): Promise<readonly ProcessFacts[]> {
  const all = await listProcesses();
  const shims = all.filter((process) => isOurShim(process, paths));
  const shimPids = new Set(shims.map(({ pid }) => pid));
  return [
    ...all.filter((process) => isOurContainerd(process, paths)),
    ...shims,
    ...all.filter((process) => shimPids.has(process.parent)),
  ];
}
