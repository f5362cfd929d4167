/** A Podman service of its own, with storage in a temporary folder, for one test file. */

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { connect } from '../../src/engines/docker/connect.ts';
import type { EngineConnection } from '../../src/engines/docker/wire/connection.ts';

export interface PodmanService {
  readonly connection: EngineConnection;
  readonly stop: () => Promise<void>;
}

/** `hostsFile`: what containers get as the beginning of /etc/hosts, instead of this machine's. */
export async function startPodman(hostsFile?: string): Promise<PodmanService> {
  const folder = mkdtempSync(join(tmpdir(), 'sally-podman-'));
  const socket = join(folder, 'podman.sock');
  // All three, or it shares a state folder with whatever other Podman the machine has.
  const storage = ['--root', 'root', '--runroot', 'run', '--tmpdir', 'tmp'].map((word) =>
    word.startsWith('-') ? word : join(folder, word),
  );
  const service = ['--log-level=info', 'system', 'service', '--time=0', `unix://${socket}`];
  const child = spawn('podman', [...storage, ...service], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, CONTAINERS_CONF: writeConfig(folder, hostsFile) },
  });
  const stop = async (): Promise<void> => {
    await endChild(child);
    // Containers outlive the service: each has a monitor of its own.
    // Waited for by the whole process, which no limit of a test could end.
    const bounded = { stdio: 'ignore', timeout: 60_000, killSignal: 'SIGKILL' } as const;
    spawnSync('podman', [...storage, 'rm', '--all', '--force', '--time=0'], bounded);
    spawnSync('podman', [...storage, 'system', 'reset', '--force'], bounded);
    await rm(folder, { recursive: true, force: true });
  };
  try {
    await listening(child);
    return { connection: await connect({ kind: 'unix', path: socket }), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/**
 * By default Podman asks for a million open files, which a machine with a lower hard limit refuses to start; and it takes crun
 * where it is, which refuses a machine that has some controllers in each of the two versions of cgroups.
 */
function writeConfig(folder: string, hostsFile: string | undefined): string {
  const file = join(folder, 'containers.conf');
  const runc = ['/usr/sbin/runc', '/usr/bin/runc'].find((path) => existsSync(path));
  const lines = [
    '[containers]',
    'default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]',
    ...(hostsFile === undefined ? [] : [`base_hosts_file = "${hostsFile}"`]),
    ...(runc === undefined
      ? []
      : ['[engine]', 'runtime = "runc"', '[engine.runtimes]', `runc = ["${runc}"]`]),
  ];
  writeFileSync(file, `${lines.join('\n')}\n`);
  return file;
}

/** Its own word for it: the socket is there a little before somebody answers on it. */
async function listening(child: ChildProcess & { readonly stderr: Readable }): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    let text = '';
    // Read to the end, or a full pipe would stop the service.
    child.stderr.on('data', (chunk: Buffer) => {
      if (text.length < 65_536) text += chunk.toString('utf8');
      if (text.includes('API service listening on')) resolve();
    });
    child.once('exit', (code) => reject(new Error(`podman ended with ${code}: ${text}`)));
    child.once('error', reject);
  });
}

async function endChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  await ended;
}

/** From one engine to another, as a stream. */
export async function copyImage(from: EngineConnection, to: EngineConnection, image: string): Promise<void> {
  const upload = await from.stream({ method: 'GET', path: `/images/${encodeURIComponent(image)}/get` });
  const answer = await to.stream({
    method: 'POST',
    path: '/images/load',
    headers: { 'Content-Type': 'application/x-tar' },
    timeoutMs: 120_000,
    upload,
  });
  for await (const _ of answer) {
    // Progress, which nobody watches.
  }
}
