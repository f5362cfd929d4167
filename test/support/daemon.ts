/** A real daemon with a state folder of the test's own, started as programs start it, and gone when the test ends. */

import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { ownerId } from '../../src/lib/owner.ts';
import type { HealthView } from '../../src/protocol/views.ts';
import { type ConnectionOptions, DaemonClient } from '../../src/sdk/client.ts';
import { type CreateOptions, Sandbox } from '../../src/sdk/sandbox.ts';
import { boxEngineOf, removeBoxes } from './box-engine.ts';
import { testEngine } from './engine.ts';
import { engineVariables, testImage } from './engine-under-test.ts';
import { until } from './until.ts';

export interface TestDaemon {
  readonly stateDir: string;
  readonly client: DaemonClient;
  /** Another client of it, which would start it in the same way. */
  readonly connect: (options?: ConnectionOptions) => DaemonClient;
  readonly health: () => Promise<HealthView>;
  /** `kill -9`; resolves when the process is gone. */
  readonly kill: () => Promise<void>;
  /** Of the test image. */
  readonly make: (options?: CreateOptions) => Promise<Sandbox>;
  /** Containers of this daemon's sandboxes that the engine has. */
  readonly containers: () => Promise<number>;
  readonly log: () => Promise<string>;
}

/** It is started by the first call, like everywhere. `more` are variables of the daemon alone. */
export async function testDaemon(more: Readonly<Record<string, string>> = {}): Promise<TestDaemon> {
  const variables = { ...engineVariables, ...more };
  const { connection, endpoint } = testEngine();
  const stateDir = await mkdtemp(join(tmpdir(), 'sally-daemon-'));
  const clients: DaemonClient[] = [];
  const connect = (options: ConnectionOptions = {}): DaemonClient => {
    const before = { ...process.env };
    Object.assign(process.env, { DOCKER_HOST: endpoint }, variables);
    const made = new DaemonClient({ stateDir, ...options });
    for (const name of Object.keys({ DOCKER_HOST: endpoint, ...variables })) {
      if (before[name] === undefined) delete process.env[name];
      else process.env[name] = before[name];
    }
    clients.push(made);
    return made;
  };
  const client = connect();
  const engine = await boxEngineOf(connection, stateDir);
  const owner = ownerId(process.getuid?.() ?? -1, stateDir);
  const health = async (): Promise<HealthView> => await client.json('GET', '/v1/health');
  onTestFinished(async () => {
    // What still asks in the background would start another one.
    for (const made of clients) made.close();
    const last = new DaemonClient({ stateDir, startDaemon: false, anyEngine: true });
    // One that was started at the same time and came late finds nobody, and is the daemon then.
    do await last.shutdown({ keep: true });
    while (!(await isGone(await pidOf(stateDir), lateMs)));
    last.close();
    await removeBoxes(engine, connection, owner);
    await rm(stateDir, { recursive: true, force: true });
  });
  return {
    stateDir,
    client,
    connect,
    health,
    kill: async () => {
      const { pid } = await health();
      process.kill(pid, 'SIGKILL');
      await gone(pid);
    },
    make: async (options = {}) => await Sandbox.create({ ...testImage(), ...options }, { client }),
    containers: async () => (await engine.list(owner)).length,
    log: async () => await readFile(join(stateDir, 'daemon.log'), 'utf8'),
  };
}

async function pidOf(stateDir: string): Promise<number | undefined> {
  try {
    const lock = JSON.parse(await readFile(join(stateDir, 'daemon.lock'), 'utf8')) as { pid: number };
    return lock.pid;
  } catch {
    return undefined;
  }
}

/** A daemon that was told to stop is gone by then. */
const lateMs = 15_000;

const gone = async (pid: number): Promise<void> => void (await isGone(pid, Number.POSITIVE_INFINITY));

/** The system tells nobody but a parent. False: it still runs after that long. */
async function isGone(pid: number | undefined, withinMs: number): Promise<boolean> {
  if (pid === undefined) return true;
  const from = performance.now();
  let gone = false;
  await until(async () => {
    const status = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined);
    // A zombie waits for its parent, and is as dead as it will be; but while another of its threads is on its way out, its
    // sockets are open and take connections that nobody will answer.
    const threads = await readdir(`/proc/${pid}/task`).catch(() => []);
    const isZombie = / [ZX] /.test(status?.slice(status.lastIndexOf(')')) ?? '');
    gone = status === undefined || (isZombie && threads.length <= 1);
    return gone || performance.now() - from >= withinMs;
  });
  return gone;
}
