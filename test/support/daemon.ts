/** A real daemon with a state folder of the test's own, started as programs start it, and gone when the test ends. */

import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { dockerBoxEngine } from '../../src/engines/docker/box-engine.ts';
import { ownerId } from '../../src/lib/owner.ts';
import { readPorterBinary } from '../../src/porter/binary.ts';
import type { HealthView } from '../../src/protocol/views.ts';
import { type ConnectionOptions, DaemonClient } from '../../src/sdk/client.ts';
import { type CreateOptions, Sandbox } from '../../src/sdk/sandbox.ts';
import { testEngine } from './engine.ts';

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

/** It is started by the first call, like everywhere. `variables` are those of the daemon alone. */
export async function testDaemon(variables: Readonly<Record<string, string>> = {}): Promise<TestDaemon> {
  const { connection, endpoint, image } = testEngine();
  const stateDir = await mkdtemp(join(tmpdir(), 'sally-daemon-'));
  const connect = (options: ConnectionOptions = {}): DaemonClient => {
    const before = { ...process.env };
    Object.assign(process.env, { DOCKER_HOST: endpoint }, variables);
    const made = new DaemonClient({ stateDir, ...options });
    for (const name of Object.keys({ DOCKER_HOST: endpoint, ...variables })) {
      if (before[name] === undefined) delete process.env[name];
      else process.env[name] = before[name];
    }
    return made;
  };
  const client = connect();
  const engine = dockerBoxEngine(connection, readPorterBinary);
  const owner = ownerId(process.getuid?.() ?? -1, stateDir);
  const health = async (): Promise<HealthView> => await client.json('GET', '/v1/health');
  onTestFinished(async () => {
    await client.shutdown({ keep: true });
    client.close();
    await gone(await pidOf(stateDir));
    for (const box of await engine.list(owner)) await engine.remove(box.id);
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
    make: async (options = {}) => await Sandbox.create({ image, ...options }, { client }),
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

/** The system tells nobody but a parent: so it is asked, as often as it takes. */
async function gone(pid: number | undefined): Promise<void> {
  if (pid === undefined) return;
  for (;;) {
    const status = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined);
    // A zombie waits for its parent, and is as dead as it will be; but while another of its threads is on its way out, its
    // sockets are open and take connections that nobody will answer.
    const threads = await readdir(`/proc/${pid}/task`).catch(() => []);
    const isZombie = / [ZX] /.test(status?.slice(status.lastIndexOf(')')) ?? '');
    if (status === undefined || (isZombie && threads.length <= 1)) return;
    await new Promise((resolve) => setImmediate(resolve));
  }
}
