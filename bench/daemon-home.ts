/** The built daemon on a state folder of the benchmark's own, and the peers' command lines against the same engine. */

import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { ownerId } from '../src/lib/owner.ts';
import { packageInfo } from '../src/lib/package-root.ts';
import { DaemonClient } from '../src/sdk/client.ts';
import type { BenchEngine } from './box.ts';

const execute = promisify(execFile);

export interface BenchDaemon {
  readonly pid: number;
  readonly client: DaemonClient;
  /** As `kill -9`; resolves when the process is gone. */
  readonly kill: () => Promise<void>;
}

export interface BenchHome {
  readonly stateDir: string;
  /** Resolves when it listens. */
  readonly start: (more?: Readonly<Record<string, string>>) => Promise<BenchDaemon>;
  readonly docker: (...words: readonly string[]) => Promise<void>;
  readonly sally: (...words: readonly string[]) => Promise<void>;
}

/** At the end every daemon of it is killed, and what they made is removed. */
export async function withHome(
  { connection, engine }: BenchEngine,
  work: (home: BenchHome) => Promise<void>,
): Promise<void> {
  const stateDir = mkdtempSync(join(tmpdir(), 'sallyport-bench-'));
  const { root } = packageInfo();
  const env = {
    PATH: process.env['PATH'] ?? '/usr/local/bin:/usr/bin:/bin',
    HOME: stateDir,
    DOCKER_HOST: connection.endpoint,
    SALLYPORT_STATE_DIR: stateDir,
  };
  const children: ChildProcess[] = [];
  const call = async (program: string, words: readonly string[]): Promise<void> => {
    const running = execute(program, words, { env, cwd: stateDir });
    running.child.stdin?.end();
    await running;
  };
  try {
    await work({
      stateDir,
      start: async (more = {}) => {
        const child = spawn(process.execPath, [join(root, 'dist/daemon/main.js'), '--report-fd', '3'], {
          stdio: ['ignore', 'ignore', 'inherit', 'pipe'],
          env: { ...env, ...more },
          cwd: '/',
        });
        children.push(child);
        const words = await text(child.stdio[3] as NodeJS.ReadableStream);
        if (!words.includes('"ready":true')) throw new Error(`the daemon did not start: ${words}`);
        return {
          pid: child.pid ?? 0,
          client: new DaemonClient({ stateDir, startDaemon: false, anyEngine: true }),
          kill: () => endOf(child),
        };
      },
      docker: (...words) => call('docker', words),
      sally: (...words) => call(process.execPath, [join(root, 'dist/cli/main.js'), ...words]),
    });
  } finally {
    for (const child of children) await endOf(child);
    const owner = ownerId(process.getuid?.() ?? -1, stateDir);
    for (const { id } of await engine.list(owner)) await engine.remove(id);
    await rm(stateDir, { recursive: true, force: true });
  }
}

async function endOf(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
}
