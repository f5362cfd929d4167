/**
 * Runs a program of this machine (apt-get, mmdebstrap) as a child that cannot outlive its caller's interest: its output
 * comes as lines, the last of them are kept for error messages, and an abort ends it and waits until it is gone.
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';

const keptLines = 12;
const defaultGraceMs = 20_000;

export interface ProgramOptions {
  readonly onLine: (line: string) => void;
  readonly signal?: AbortSignal | undefined;
  /** Added to the environment this process has. */
  readonly environment?: Readonly<Record<string, string>>;
  /** True when stdout is data for the caller and only stderr is lines. */
  readonly stdoutIsData?: boolean;
  /** How it is asked to stop; after `graceMs` its whole process group is killed. */
  readonly stop: { readonly signal: NodeJS.Signals; readonly to: 'program' | 'group' };
  readonly graceMs?: number;
}

export interface ProgramEnd {
  /** Null when a signal ended it. */
  readonly exitCode: number | null;
  readonly lastLines: readonly string[];
}

export interface RunningProgram {
  /** Only with `stdoutIsData`; must be read or destroyed, or the program never ends. */
  readonly stdout: Readable;
  /** Rejects only when the program could not be started. */
  readonly ended: Promise<ProgramEnd>;
  /** Asks it to stop and resolves when it is gone. Idempotent; harmless after its end. */
  readonly stop: () => Promise<void>;
}

export function startProgram(
  command: string,
  args: readonly string[],
  options: ProgramOptions,
): RunningProgram {
  const assignments = Object.entries(options.environment ?? {}).map(([name, value]) => `${name}=${value}`);
  // A group of its own: a terminal's Ctrl-C reaches us alone, and we decide how the child is told.
  const child = spawn('env', [...assignments, command, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  const lastLines: string[] = [];
  const take = (line: string): void => {
    const text = line.trim();
    if (text === '') return;
    lastLines.push(text);
    if (lastLines.length > keptLines) lastLines.shift();
    options.onLine(text);
  };
  createInterface({ input: child.stderr }).on('line', take);
  if (options.stdoutIsData !== true) createInterface({ input: child.stdout }).on('line', take);

  const ended = once(child, 'close').then(([exitCode]: unknown[]) => ({
    exitCode: typeof exitCode === 'number' ? exitCode : null,
    lastLines,
  }));
  const settled = ended.then(
    () => {},
    () => {},
  );
  const send = (signal: NodeJS.Signals, to: 'program' | 'group'): void => {
    if (child.pid === undefined) return;
    try {
      process.kill(to === 'group' ? -child.pid : child.pid, signal);
    } catch {
      // Already gone, which is what was asked for.
    }
  };
  const stop = async (): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null) send(options.stop.signal, options.stop.to);
    // Nobody reads any more, and an unread pipe would keep the end of the program from being seen.
    child.stdout.destroy();
    const timer = setTimeout(() => send('SIGKILL', 'group'), options.graceMs ?? defaultGraceMs);
    await settled;
    clearTimeout(timer);
  };
  const onAbort = (): void => void stop();
  if (options.signal?.aborted === true) onAbort();
  else options.signal?.addEventListener('abort', onAbort, { once: true });
  void settled.then(() => options.signal?.removeEventListener('abort', onAbort));
  return { stdout: child.stdout, ended, stop };
}

/** The kernel's words for a full disk, and apt's when it looks before it starts. */
export function saysDiskFull(lines: readonly string[]): boolean {
  return lines.some((line) =>
    /no space left on device|enough free space in|disk quota exceeded|cannot write.*no space/i.test(line),
  );
}
