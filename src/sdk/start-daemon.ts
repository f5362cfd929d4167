/** Starts a daemon of this package that outlives the calling program. */

import { spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { packageInfo } from '../lib/package-root.ts';
import { type Progress, type ProgressEvent, silent } from '../lib/progress.ts';
import { isSallyportError, SallyportError } from '../protocol/errors.ts';
import { errorFromWire, isWireError } from './wire-error.ts';

export interface StartOptions {
  /** Of its engine: the log goes there. */
  readonly folder: string;
  readonly childVariables: Readonly<Record<string, string | undefined>>;
  readonly timeoutMs: number;
  /** Told while the daemon starts an engine, which takes its time. */
  readonly progress?: Progress;
  /** Ends a daemon that is not ready yet: nobody waits for it any longer. */
  readonly signal?: AbortSignal;
  /** More words on its command line. */
  readonly args?: readonly string[];
}

const tailBytes = 4096;
/** An engine that is being started has 45 s, and says nothing for most of it. */
const patienceMs = 60_000;

/** Resolves when the daemon listens; rejects with what it said, `daemon_running` if another one was faster. */
export async function startDaemon(options: StartOptions): Promise<void> {
  const { folder, childVariables, timeoutMs, progress = silent, args = [], signal } = options;
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const logPath = join(folder, 'daemon.log');
  const log = openSync(logPath, 'a', 0o600);
  const child = spawn(
    process.execPath,
    [join(packageInfo().root, 'dist/daemon/main.js'), '--report-fd', '3', ...args],
    { detached: true, cwd: '/', env: { ...childVariables }, stdio: ['ignore', log, log, 'pipe'] },
  );
  closeSync(log);
  child.unref();
  const report = child.stdio[3] as Readable;
  const giveUp = (): void => {
    child.kill();
    report.destroy(new Error('nobody waits for the daemon any longer'));
  };
  signal?.addEventListener('abort', giveUp, { once: true });
  try {
    const spawned = new Promise<never>((_, reject) => child.once('error', reject));
    const words = await Promise.race([readReport(report, timeoutMs, progress), spawned]);
    if (words === 'ready') return;
    throw words;
  } catch (error) {
    signal?.throwIfAborted();
    if (isSallyportError(error)) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    throw new SallyportError('daemon_start_failed', `${reason}\n${await endOf(logPath)}`.trimEnd(), {
      details: { log: logPath },
      cause: error,
    });
  } finally {
    signal?.removeEventListener('abort', giveUp);
    report.destroy();
  }
}

/** Lines: what it is doing, then once that it is ready, or why it is not. */
async function readReport(
  report: Readable,
  timeoutMs: number,
  progress: Progress,
): Promise<'ready' | SallyportError> {
  const late = (ms: number): NodeJS.Timeout =>
    setTimeout(() => report.destroy(new Error(`the daemon was not ready within ${ms / 1000} s`)), ms);
  let timer = late(timeoutMs);
  try {
    for await (const line of createInterface({ input: report })) {
      const words = JSON.parse(line) as { readonly progress?: ProgressEvent };
      if (words.progress === undefined) return isWireError(words) ? errorFromWire(words.error) : 'ready';
      progress(words.progress);
      clearTimeout(timer);
      timer = late(patienceMs);
    }
    throw new Error('the daemon ended before it was ready');
  } finally {
    clearTimeout(timer);
  }
}

async function endOf(path: string): Promise<string> {
  const file = await open(path, 'r');
  try {
    const { size } = await file.stat();
    const buffer = Buffer.alloc(Math.min(size, tailBytes));
    await file.read(buffer, 0, buffer.length, size - buffer.length);
    return buffer.toString('utf8');
  } finally {
    await file.close();
  }
}
