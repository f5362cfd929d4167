/** The built daemon as a process of its own, on a state folder of the test's own. */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { onTestFinished } from 'vitest';
import type { EngineConnection } from '../../src/engines/docker/wire/connection.ts';
import { ownerId } from '../../src/lib/owner.ts';
import { packageInfo } from '../../src/lib/package-root.ts';
import type { BoxEngine } from '../../src/sandboxes/ports.ts';
import { DaemonClient } from '../../src/sdk/client.ts';
import { boxEngineOf, removeBoxes } from './box-engine.ts';
import { testEngine } from './engine.ts';
import { engineVariables } from './engine-under-test.ts';

const entry = join(packageInfo().root, 'dist/daemon/main.js');

export interface TestDaemon {
  readonly child: ChildProcess;
  readonly client: DaemonClient;
  /** Resolves when the process has ended, however it did. */
  readonly ended: Promise<unknown>;
}

export interface DaemonHome {
  readonly stateDir: string;
  readonly owner: string;
  readonly engine: BoxEngine;
  readonly start: (env?: Readonly<Record<string, string>>) => Promise<TestDaemon>;
}

/**
 * A state folder; at the end every daemon started on it is killed, and what it made is removed. The engine is the run's
 * own unless another one is named.
 */
export async function daemonHome(
  connection: EngineConnection = testEngine().connection,
): Promise<DaemonHome> {
  const stateDir = await mkdtemp(join(tmpdir(), 'sallyport-daemon-'));
  const owner = ownerId(process.getuid?.() ?? -1, stateDir);
  const engine = await boxEngineOf(connection, stateDir);
  const children: ChildProcess[] = [];
  onTestFinished(async () => {
    for (const child of children) await endOf(child);
    await removeBoxes(engine, connection, owner);
    await rm(stateDir, { recursive: true, force: true });
  });
  return {
    stateDir,
    owner,
    engine,
    start: async (env = {}) => {
      const child = spawn(process.execPath, [entry, '--report-fd', '3'], {
        stdio: ['ignore', 'ignore', 'inherit', 'pipe'],
        env: {
          PATH: process.env['PATH'] ?? '',
          HOME: process.env['HOME'] ?? '/',
          DOCKER_HOST: connection.endpoint,
          SALLYPORT_STATE_DIR: stateDir,
          ...engineVariables,
          ...env,
        },
      });
      children.push(child);
      const ended = once(child, 'exit');
      const report = child.stdio[3];
      if (report == null) throw new Error('the daemon has no descriptor to report on');
      const words = await text(report as NodeJS.ReadableStream);
      if (!words.includes('"ready":true')) throw new Error(`the daemon did not start: ${words}`);
      return { child, ended, client: new DaemonClient({ stateDir, startDaemon: false, anyEngine: true }) };
    },
  };
}

async function endOf(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGKILL');
  await once(child, 'exit');
}
