/**
 * Starts the private dockerd so that it outlives this process, and waits until it answers. Whatever goes wrong before
 * that (it dies, time runs out, Ctrl-C) ends with nothing of it running.
 */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, open, readFile, rm, writeFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { connect } from '../../engines/docker/connect.ts';
import type { EngineConnection } from '../../engines/docker/wire/connection.ts';
import { isDiskFull } from '../../engines/docker/wire/errors.ts';
import type { Progress } from '../../lib/progress.ts';
import { isSallyportError, SallyportError } from '../../protocol/errors.ts';
import { dockerdArguments } from './arguments.ts';
import { bridgeOf, makeBridge } from './bridge.ts';
import { lastLogLines } from './log-tail.ts';
import { unmountBelow } from './mounts.ts';
import { findDaemon } from './owned-processes.ts';
import type { PrivateEnginePaths } from './paths.ts';
import { removeRuntimes, writeRuntimes } from './runtimes.ts';
import { stopPrivateEngine } from './stop.ts';

export interface StartOptions {
  readonly dockerd: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly progress: Progress;
  readonly signal?: AbortSignal;
  readonly readyWithinMs?: number;
}

export interface StartedEngine {
  readonly connection: EngineConnection;
  readonly pid: number;
  /** False when it was running already, or another process started it at the same moment. */
  readonly startedHere: boolean;
}

const lookAgainMs = 100;
const defaultReadyWithinMs = 45_000;

export async function startPrivateEngine(
  paths: PrivateEnginePaths,
  options: StartOptions,
): Promise<StartedEngine> {
  if (options.signal?.aborted === true) throw cancelled(paths);
  const running = await findDaemon(paths);
  if (running !== undefined) {
    const connection = await untilItAnswers(paths, options, () => undefined);
    return { connection, pid: running.pid, startedHere: false };
  }
  const dataIsNew = !existsSync(paths.dataRoot);
  await prepare(paths, options.environment);
  await makeBridge(bridgeOf(paths), options.environment);
  options.progress({ step: 'engine', message: `starting a private engine at unix://${paths.socket}` });
  const child = await launch(paths, options);
  try {
    const connection = await untilItAnswers(paths, options, () => endOf(child));
    const daemon = await findDaemon(paths);
    child.unref();
    return { connection, pid: daemon?.pid ?? child.pid ?? -1, startedHere: daemon?.pid === child.pid };
  } catch (error) {
    await endChild(child);
    const other = await findDaemon(paths);
    if (other !== undefined && !isSallyportError(error, 'cancelled')) {
      // Two started at once; dockerd lets only one of them have the pidfile.
      const connection = await untilItAnswers(paths, options, () => undefined);
      return { connection, pid: other.pid, startedHere: false };
    }
    if (other === undefined) {
      await stopPrivateEngine(paths, { environment: options.environment });
      if (dataIsNew) await removeTraces(paths, options.environment, isSallyportError(error, 'cancelled'));
    }
    throw error;
  }
}

/** What a first start that came to nothing has made. The log stays unless nobody has a reason to read it. */
async function removeTraces(
  paths: PrivateEnginePaths,
  environment: Readonly<Record<string, string>>,
  alsoLog: boolean,
): Promise<void> {
  // SECURITY: never remove through a mount.
  if (!(await unmountBelow(paths.dataRoot, environment))) return;
  await rm(paths.dataRoot, { recursive: true, force: true });
  if (!alsoLog) return;
  await removeRuntimes(paths.configFile);
  await rm(paths.logFile, { force: true });
}

async function prepare(
  paths: PrivateEnginePaths,
  environment: Readonly<Record<string, string>>,
): Promise<void> {
  await mkdir(paths.runDir, { recursive: true, mode: 0o755 });
  await mkdir(paths.stateDir, { recursive: true, mode: 0o755 });
  // dockerd refuses to start over a pidfile whose pid was given to some other process meanwhile.
  await rm(paths.pidFile, { force: true });
  await writeRuntimes(paths.configFile, environment);
  // Each start begins a new log, which also bounds it.
  await writeFile(paths.logFile, '', { mode: 0o640 });
}

async function launch(paths: PrivateEnginePaths, options: StartOptions): Promise<ChildProcess> {
  const log = await open(paths.logFile, 'a');
  try {
    const child = spawn(options.dockerd, [...dockerdArguments(paths)], {
      // A session of its own: Ctrl-C and a closed terminal are for the CLI, not for the engine.
      detached: true,
      cwd: '/',
      env: { ...options.environment },
      stdio: ['ignore', log.fd, log.fd],
    });
    const failure = once(child, 'error');
    await Promise.race([once(child, 'spawn'), failure.then(([error]) => Promise.reject(error))]);
    return child;
  } catch (cause) {
    throw new SallyportError('engine_start_failed', `${options.dockerd} could not be started`, { cause });
  } finally {
    await log.close();
  }
}

function endOf(child: ChildProcess): string | undefined {
  if (child.exitCode !== null) return `exit code ${child.exitCode}`;
  return child.signalCode ?? undefined;
}

async function untilItAnswers(
  paths: PrivateEnginePaths,
  options: StartOptions,
  ended: () => string | undefined,
): Promise<EngineConnection> {
  const { signal } = options;
  const withinMs = options.readyWithinMs ?? defaultReadyWithinMs;
  const giveUpAt = performance.now() + withinMs;
  for (;;) {
    if (signal?.aborted === true) throw cancelled(paths);
    const end = ended();
    if (end !== undefined) throw await startFailed(paths, `ended at once (${end})`);
    try {
      const endpoint = { kind: 'unix', path: paths.socket } as const;
      return await connect(endpoint, signal === undefined ? {} : { signal });
    } catch (error) {
      if (!isSallyportError(error)) throw error;
      if (error.code === 'cancelled') throw cancelled(paths);
      if (error.code === 'engine_permission_denied') throw error;
    }
    if (performance.now() >= giveUpAt) {
      throw await startFailed(paths, `did not answer within ${Math.round(withinMs / 1000)} s`);
    }
    await delay(lookAgainMs, undefined, signal === undefined ? {} : { signal }).catch(() => {});
  }
}

async function startFailed(paths: PrivateEnginePaths, how: string): Promise<SallyportError> {
  const log = await readFile(paths.logFile, 'utf8').catch(() => '');
  const lines = lastLogLines(log, 10);
  const reason = lines.at(-1) ?? 'its log is empty';
  return new SallyportError(
    isDiskFull(log) ? 'disk_full' : 'engine_start_failed',
    `the private engine ${how}: ${reason}`,
    {
      details: { log: lines, logFile: paths.logFile },
      advice: `Read ${paths.logFile}, or start an engine by hand and run \`sally setup\` again.`,
    },
  );
}

function cancelled(paths: PrivateEnginePaths): SallyportError {
  return new SallyportError('cancelled', `starting the private engine at ${paths.socket} was cancelled`);
}

async function endChild(child: ChildProcess): Promise<void> {
  if (endOf(child) !== undefined) return;
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), 20_000);
  await ended;
  clearTimeout(timer);
}
