/** Starts a daemon of this package that outlives the calling program. */

import { spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { packageInfo } from '../lib/package-root.ts';
import { isSallyportError, SallyportError } from '../protocol/errors.ts';
import { errorFromWire, isWireError } from './wire-error.ts';

export interface StartOptions {
  readonly stateDir: string;
  readonly childVariables: Readonly<Record<string, string | undefined>>;
  readonly timeoutMs: number;
  /** More words on its command line. */
  readonly args?: readonly string[];
}

const tailBytes = 4096;

/** Resolves when the daemon listens; rejects with what it said, `daemon_running` if another one was faster. */
export async function startDaemon(options: StartOptions): Promise<void> {
  const { stateDir, childVariables, timeoutMs, args = [] } = options;
  mkdirSync(stateDir, { recursive: true, mode: 0o700 });
  const logPath = join(stateDir, 'daemon.log');
  const log = openSync(logPath, 'a', 0o600);
  const child = spawn(
    process.execPath,
    [join(packageInfo().root, 'dist/daemon/main.js'), '--report-fd', '3', ...args],
    { detached: true, cwd: '/', env: { ...childVariables }, stdio: ['ignore', log, log, 'pipe'] },
  );
  closeSync(log);
  child.unref();
  const report = child.stdio[3] as Readable;
  try {
    const spawned = new Promise<never>((_, reject) => child.once('error', reject));
    const words = await Promise.race([readReport(report, timeoutMs), spawned]);
    if (words === 'ready') return;
    throw words;
  } catch (error) {
    if (isSallyportError(error)) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    throw new SallyportError('daemon_start_failed', `${reason}\n${await endOf(logPath)}`.trimEnd(), {
      details: { log: logPath },
      cause: error,
    });
  } finally {
    report.destroy();
  }
}

async function readReport(report: Readable, timeoutMs: number): Promise<'ready' | SallyportError> {
  const late = setTimeout(
    () => report.destroy(new Error(`the daemon was not ready within ${timeoutMs} ms`)),
    timeoutMs,
  );
  try {
    let text = '';
    for await (const chunk of report) text += String(chunk);
    if (text === '') throw new Error('the daemon ended before it was ready');
    const words = JSON.parse(text) as unknown;
    return isWireError(words) ? errorFromWire(words.error) : 'ready';
  } finally {
    clearTimeout(late);
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
