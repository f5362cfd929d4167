/**
 * Ends the private engine and takes away what it leaves: its containerd, shims, mounts, bridge, socket and pidfile. Its data
 * (images, volumes) stays. Idempotent, and never cancelled half-way: every wait in it is bounded.
 */

import { rm } from 'node:fs/promises';
import { type Progress, silent } from '../../lib/progress.ts';
import { SallyportError } from '../../protocol/errors.ts';
import { type ProcessFacts, signalProcess, waitUntilGone } from '../processes.ts';
import { bridgeOf, removeBridge } from './bridge.ts';
import { unmountBelow } from './mounts.ts';
import { findDaemon, findLeftovers } from './owned-processes.ts';
import type { PrivateEnginePaths } from './paths.ts';

export interface StopOptions {
  readonly environment: Readonly<Record<string, string>>;
  readonly progress?: Progress;
  /** dockerd itself gives its containers 15 s to end. */
  readonly graceMs?: number;
}

export interface StopResult {
  readonly wasRunning: boolean;
  readonly pid?: number;
  /** It did not end by itself in time. */
  readonly killed: boolean;
  /** How many processes of an engine that had crashed were ended. */
  readonly leftovers: number;
}

const killedWithinMs = 10_000;

export async function stopPrivateEngine(
  paths: PrivateEnginePaths,
  options: StopOptions,
): Promise<StopResult> {
  const progress = options.progress ?? silent;
  const daemon = await findDaemon(paths);
  let killed = false;
  if (daemon !== undefined) {
    progress({ step: 'engine', message: `stopping the private engine (pid ${daemon.pid})` });
    killed = await endProcesses([daemon], options.graceMs ?? 20_000, paths);
  }
  const leftovers = await findLeftovers(paths);
  if (leftovers.length > 0) await endProcesses(leftovers, 3_000, paths);
  if (daemon !== undefined || leftovers.length > 0 || mayClean()) await clean(paths, options.environment);
  return {
    wasRunning: daemon !== undefined,
    killed,
    leftovers: leftovers.length,
    ...(daemon === undefined ? {} : { pid: daemon.pid }),
  };
}

function mayClean(): boolean {
  return process.getuid?.() === 0;
}

/** TERM, a bounded wait, then KILL. True when KILL was needed. */
async function endProcesses(
  targets: readonly ProcessFacts[],
  graceMs: number,
  paths: PrivateEnginePaths,
): Promise<boolean> {
  await signalAll(targets, 'SIGTERM', paths);
  if (await waitUntilGone(targets, graceMs)) return false;
  await signalAll(targets, 'SIGKILL', paths);
  if (!(await waitUntilGone(targets, killedWithinMs))) {
    throw new SallyportError('setup_failed', `the private engine (${describe(targets)}) does not end`, {
      details: { pids: targets.map(({ pid }) => String(pid)) },
      advice: `Its processes hang in the kernel; its log is ${paths.logFile}. A restart of the machine ends them.`,
    });
  }
  return true;
}

async function signalAll(
  targets: readonly ProcessFacts[],
  signal: 'SIGTERM' | 'SIGKILL',
  paths: PrivateEnginePaths,
): Promise<void> {
  try {
    for (const target of targets) await signalProcess(target, signal);
  } catch (cause) {
    throw new SallyportError(
      'engine_permission_denied',
      `the private engine (${describe(targets)}) runs as root and may only be stopped by root`,
      { cause, details: { socket: paths.socket }, advice: 'Run `sudo sally setup --stop`.' },
    );
  }
}

function describe(targets: readonly ProcessFacts[]): string {
  return `pid ${targets.map(({ pid }) => pid).join(', ')}`;
}

async function clean(
  paths: PrivateEnginePaths,
  environment: Readonly<Record<string, string>>,
): Promise<void> {
  await unmountBelow(paths.dataRoot, environment);
  // SECURITY: a recursive removal through a mount would delete what is mounted there.
  if (await unmountBelow(paths.execRoot, environment)) {
    await rm(paths.execRoot, { recursive: true, force: true });
  }
  await removeBridge(bridgeOf(paths), environment);
  await rm(paths.socket, { force: true });
  await rm(paths.pidFile, { force: true });
}
