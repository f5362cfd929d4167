/** Records as the store gets them, for tests of the store. */

import { execIdFrom, type SandboxId, sandboxIdFrom } from '../../src/protocol/ids.ts';
import type { ExecRecord, SandboxRecord } from '../../src/sandboxes/records.ts';

const bytes = (count: number, seed: number): Uint8Array =>
  Uint8Array.from({ length: count }, (_, place) => Math.floor(seed / 32 ** place) % 32);

export const sandboxIdOf = (seed: number) => sandboxIdFrom(bytes(10, seed));
export const execIdOf = (seed: number) => execIdFrom(bytes(12, seed));

export function sandboxRecord(seed: number, changes: Partial<SandboxRecord> = {}): SandboxRecord {
  return {
    id: sandboxIdOf(seed),
    name: `box-${seed}`,
    state: 'READY',
    sequence: 0,
    createdAt: '2026-11-15T10:00:00.000Z',
    spec: { labels: { number: String(seed) } },
    image: 'sallyport-base:latest',
    imageEnv: { PATH: '/usr/bin' },
    plan: {
      profile: 'standard',
      limits: {
        memoryBytes: 4 * 2 ** 30,
        cpus: 2,
        pids: 512,
        nofile: 65536,
        shmBytes: 64 * 2 ** 20,
        diskBytes: 20 * 2 ** 30,
      },
      user: { uid: 64000, gid: 64000, home: '/home/sally' },
      usesPool: true,
      workdir: '/home/sally',
      mounts: [],
      copies: [],
      shadows: [],
      sockets: [],
      tmpfs: [],
      readOnlyRoot: false,
      labels: {},
      notes: [],
    },
    isolation: { engine: 'docker', engineVersion: '20.10', runtime: 'default' },
    ephemeral: false,
    detached: true,
    containerName: `sallyport-${seed}`,
    token: 'ab'.repeat(16),
    epoch: 1,
    ...changes,
  };
}

export function execRecord(
  sandboxId: SandboxId,
  seed: number,
  changes: Partial<ExecRecord> = {},
): ExecRecord {
  return {
    id: execIdOf(seed),
    sandboxId,
    stream: seed,
    argv: ['echo', String(seed)],
    cwd: '/',
    tty: false,
    background: false,
    main: false,
    reason: '',
    startedAt: '2026-11-15T10:00:00.000Z',
    state: 'running',
    stdoutBytes: 0,
    stderrBytes: 0,
    ...changes,
  };
}
