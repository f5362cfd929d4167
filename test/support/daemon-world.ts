/** What a daemon has in the world, to be compared before and after, and ways to speak to it that the SDK does not have. */

import { execFileSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { type IncomingHttpHeaders, request } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import { listNetworks } from '../../src/engines/docker/networks/list.ts';
import { dockerServiceEngine } from '../../src/engines/docker/service-engine.ts';
import { listVolumes } from '../../src/engines/docker/volumes/list.ts';
import { label } from '../../src/protocol/labels.ts';
import { type CreateOptions, Sandbox } from '../../src/sdk/sandbox.ts';
import type { DaemonHome, TestDaemon } from './daemon-home.ts';
import { testEngine } from './engine.ts';
import { testImage } from './engine-under-test.ts';

/** Ready, of the test image. */
export async function makeSandbox(daemon: TestDaemon, options: CreateOptions = {}): Promise<Sandbox> {
  return await Sandbox.create({ ...testImage(), ...options }, { client: daemon.client });
}

export interface Belongings {
  readonly containers: readonly string[];
  readonly services: readonly string[];
  readonly volumes: readonly string[];
  readonly networks: readonly string[];
  /** Folders of sandboxes, also half-made or half-removed ones. */
  readonly folders: readonly string[];
}

/** Everything that belongs to this daemon alone. Derived images are a cache that all share. */
export async function belongings({ engine, owner, stateDir }: DaemonHome): Promise<Belongings> {
  const { connection } = testEngine();
  const owned = [`${label.owner}=${owner}`] as const;
  const [containers, services, volumes, networks, folders] = await Promise.all([
    engine.list(owner),
    dockerServiceEngine(connection).list(owner),
    listVolumes(connection, [...owned]),
    listNetworks(connection, [...owned]),
    readdir(join(stateDir, 'sandboxes')).catch(() => []),
  ]);
  return {
    containers: containers.map(({ id }) => id).sort(),
    services: services.map(({ id }) => id).sort(),
    volumes: volumes.map(({ name }) => name).sort(),
    networks: networks.map(({ name }) => name).sort(),
    folders: folders.sort(),
  };
}

export interface RawAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly error: {
    readonly code: string;
    readonly message: string;
    readonly advice: string;
    readonly details: Readonly<Record<string, unknown>>;
  };
  readonly json: unknown;
}

/** As any program could send it, right or wrong. */
export async function rawRequest(
  { stateDir }: DaemonHome,
  method: string,
  path: string,
  options: { readonly body?: string | Buffer; readonly headers?: Readonly<Record<string, string>> } = {},
): Promise<RawAnswer> {
  const { body, headers = { 'content-type': 'application/json' } } = options;
  return await new Promise((resolve, reject) => {
    const call = request(
      { socketPath: join(stateDir, 'daemon.sock'), method, path, headers: { host: 'localhost', ...headers } },
      (answer) => {
        text(answer).then((words) => {
          const json = words === '' ? undefined : (JSON.parse(words) as { error: RawAnswer['error'] });
          const { statusCode: status = 0, headers } = answer;
          resolve({ status, headers, json, error: json?.error as RawAnswer['error'] });
        }, reject);
      },
    );
    call.once('error', reject);
    call.end(body);
  });
}

/** The process's figures, as the kernel has them. */
export async function processFigures(
  pid: number,
): Promise<{ readonly descriptors: number; readonly rssBytes: number }> {
  const [descriptors, status] = await Promise.all([
    readdir(`/proc/${pid}/fd`),
    readFile(`/proc/${pid}/status`, 'utf8'),
  ]);
  const rssKb = Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1]);
  return { descriptors: descriptors.length, rssBytes: rssKb * 1024 };
}

/** For a daemon whose memory is to be told: what it is started with, and how to ask it. */
export function memoryReport({ stateDir }: DaemonHome): {
  readonly variables: Readonly<Record<string, string>>;
  /** Held after a collection of garbage. */
  readonly heldBytes: (daemon: TestDaemon) => Promise<number>;
} {
  const pipe = `${stateDir}.memory`;
  execFileSync('mkfifo', [pipe]);
  onTestFinished(() => rmSync(pipe));
  const program = fileURLToPath(new URL('./report-memory.cjs', import.meta.url));
  return {
    variables: { NODE_OPTIONS: `--require ${program}`, SALLYPORT_TEST_PIPE: pipe },
    heldBytes: async (daemon) => {
      process.kill(pidOf(daemon), 'SIGUSR2');
      return Number(await readFile(pipe, 'utf8'));
    },
  };
}

export function pidOf({ child }: TestDaemon): number {
  if (child.pid === undefined) throw new Error('the daemon has no process');
  return child.pid;
}

/** How long something took, with what it gave. */
export async function timed<T>(work: Promise<T>): Promise<{ readonly value: T; readonly ms: number }> {
  const started = performance.now();
  const value = await work;
  return { value, ms: performance.now() - started };
}
