/**
 * Runs a guarded command on this machine, in the process of whoever asked and never in the daemon: no input, a plain
 * environment, a process group of its own that is killed as a whole at the deadline and at the end, and bounded output. It
 * isolates nothing. What leaves its process group outlives it.
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, constants } from 'node:fs';
import { constants as system } from 'node:os';
import { delimiter, join } from 'node:path';
import { SallyportError } from '../protocol/errors.ts';
import { CappedOutput } from './capped-output.ts';
import type { GuardedCommand } from './guarded-command.ts';
import { hostEnvironment } from './host-environment.ts';

export interface HostRunOptions {
  readonly cwd: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** 0: no limit. */
  readonly timeoutMs: number;
  /** Between TERM and KILL at the deadline. */
  readonly graceMs: number;
  /** Of each stream. */
  readonly outputBytes: number;
  readonly signal?: AbortSignal;
}

export interface HostRun {
  readonly stdout: string;
  readonly stderr: string;
  readonly exitCode: number;
  readonly timedOut: boolean;
  readonly durationMs: number;
}

/** A descendant may hold the output open for ever; what was written before the end is there by then. */
const drainMs = 100;
const longestTimerMs = 2 ** 31 - 1;

/** The shell whose language is judged. Undefined: this machine has none, and lines of shell do not run on it. */
export function findShell(environment: Readonly<Record<string, string | undefined>>, cwd: string) {
  const folders = (hostEnvironment(environment, cwd)['PATH'] ?? '').split(delimiter);
  return ['/bin', '/usr/bin', ...folders].map((folder) => join(folder, 'bash')).find(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

export async function runOnHost(command: GuardedCommand, options: HostRunOptions): Promise<HostRun> {
  const { cwd, environment, timeoutMs, graceMs, outputBytes, signal } = options;
  signal?.throwIfAborted();
  const startedMs = performance.now();
  const [program = '', ...args] = command.argv ?? shellWords(command.text, environment, cwd);
  const child = spawn(program, args, {
    cwd,
    env: { ...hostEnvironment(environment, cwd) },
    // Its own session, and with it a group that is signalled as a whole.
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const stdout = new CappedOutput(outputBytes);
  const stderr = new CappedOutput(outputBytes);
  child.stdout.on('data', (chunk: Buffer) => stdout.add(chunk));
  child.stderr.on('data', (chunk: Buffer) => stderr.add(chunk));
  const failed = new Promise<NodeJS.ErrnoException>((resolve) => child.once('error', resolve));
  if (child.pid === undefined) return notStarted(program, await failed, startedMs);
  const group = child.pid;
  let timedOut = false;
  const kill = (name: NodeJS.Signals): void => signalGroup(group, name);
  const grace = { timer: undefined as NodeJS.Timeout | undefined };
  const deadline = setTimeout(
    () => {
      timedOut = true;
      kill(graceMs === 0 ? 'SIGKILL' : 'SIGTERM');
      grace.timer = setTimeout(() => kill('SIGKILL'), graceMs);
    },
    timeoutMs === 0 ? longestTimerMs : Math.min(timeoutMs, longestTimerMs),
  );
  const onAbort = (): void => kill('SIGKILL');
  signal?.addEventListener('abort', onAbort, { once: true });
  try {
    const closed = once(child, 'close');
    const [code, name] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
    // Whatever it left in its group has no one to answer to.
    kill('SIGKILL');
    await withinMs(closed, drainMs);
    if (signal?.aborted === true) throw new SallyportError('cancelled', 'the command was cancelled');
    return {
      stdout: stdout.text(),
      stderr: stderr.text(),
      exitCode: code ?? 128 + (name === null ? 0 : system.signals[name]),
      timedOut,
      durationMs: Math.round(performance.now() - startedMs),
    };
  } finally {
    clearTimeout(deadline);
    clearTimeout(grace.timer);
    signal?.removeEventListener('abort', onAbort);
    child.stdout.destroy();
    child.stderr.destroy();
  }
}

function shellWords(
  text: string,
  environment: Readonly<Record<string, string | undefined>>,
  cwd: string,
): readonly string[] {
  const shell = findShell(environment, cwd);
  if (shell !== undefined) return [shell, '--noprofile', '--norc', '-c', text];
  throw new SallyportError('refused_by_policy', 'this machine has no bash, and no other shell is judged', {
    advice: 'Install bash, or give the command as words.',
  });
}

function notStarted(program: string, error: NodeJS.ErrnoException, startedMs: number): HostRun {
  const isMissing = error.code === 'ENOENT';
  return {
    stdout: '',
    stderr: `${program}: ${isMissing ? 'not found' : error.message}\n`,
    exitCode: isMissing ? 127 : 126,
    timedOut: false,
    durationMs: Math.round(performance.now() - startedMs),
  };
}

function signalGroup(group: number, name: NodeJS.Signals): void {
  try {
    process.kill(-group, name);
  } catch {
    // Nobody is left in it.
  }
}

async function withinMs(work: Promise<unknown>, ms: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  await Promise.race([work, late]);
  clearTimeout(timer);
}
