/** What only a privileged container may do, in words that a sandbox and such a container run alike. */

import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import { execInContainer } from '../../src/engines/docker/containers/exec.ts';
import { removeContainer } from '../../src/engines/docker/containers/remove.ts';
import { startContainer } from '../../src/engines/docker/containers/start.ts';
import type { EngineConnection } from '../../src/engines/docker/wire/connection.ts';
import { testEngine } from './engine.ts';
import { temporaryFolder } from './little-engine.ts';

/** Ends with 0 where it could be done. None changes the host where it can: files are opened to be written, and not written. */
const privilegedActs: Readonly<Record<string, string>> = {
  mount: '/probe/probe mount',
  mountCgroup: '/probe/probe mount-cgroup',
  unshareMounts: 'unshare -m true',
  unshareNetwork: 'unshare -n true',
  unshareUsers: 'unshare -U true',
  hostname: 'unshare -u hostname other',
  sysctl: ': >> /proc/sys/kernel/hostname',
  corePattern: ': >> /proc/sys/kernel/core_pattern',
  device: 'mknod /tmp/disk b 7 0',
  rawSocket: 'python3 -c "import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)"',
  packetSocket: 'python3 -c "import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW)"',
  owner: 'touch /tmp/mine && chown 12345 /tmp/mine',
  chroot: 'chroot / true',
  // Not every kernel has these.
  ...(existsSync('/proc/sysrq-trigger') ? { sysrq: ': >> /proc/sysrq-trigger' } : {}),
  ...(existsSync('/proc/kcore') ? { kcore: 'test "$(head -c 4 /proc/kcore | wc -c)" = 4' } : {}),
};

/** A folder with the probe, to be mounted: the strict profile has no place of its own to execute from. */
export function probeFolder(): string {
  const folder = temporaryFolder();
  chmodSync(folder, 0o755);
  const source = fileURLToPath(new URL('../security/probe.c', import.meta.url));
  execFileSync('gcc', ['-static', '-Os', '-o', join(folder, 'probe'), source]);
  return folder;
}

export const allActs = Object.entries(privilegedActs)
  .map(([name, act]) => `if (${act}) >/dev/null 2>&1; then echo ${name} done; else echo ${name} refused; fi`)
  .join('\n');

export const verdicts = (stdout: string): Readonly<Record<string, string>> =>
  Object.fromEntries(
    stdout
      .trimEnd()
      .split('\n')
      .map((line) => line.split(' ') as [string, string]),
  );

export const everyAct = (verdict: string) =>
  Object.fromEntries(Object.keys(privilegedActs).map((name) => [name, verdict]));

/** A container with what a sandbox is denied: capabilities, no filter, nothing masked. `on`: another engine than that of all tests. */
export async function inLooseContainer(
  script: string,
  folder: string,
  on?: { readonly connection: EngineConnection; readonly hostConfig: Readonly<Record<string, unknown>> },
): Promise<string> {
  const { connection: usual, image, labels } = testEngine();
  const { connection, hostConfig } = on ?? { connection: usual, hostConfig: {} };
  // Asked for here in the engine's own words: the product has none for any of this.
  const body = {
    Image: image,
    Entrypoint: [],
    Cmd: ['sleep', 'infinity'],
    User: '0:0',
    Labels: labels(),
    HostConfig: {
      NetworkMode: 'none',
      LogConfig: { Type: 'none' },
      CapAdd: ['SYS_ADMIN', 'SYS_RAWIO'],
      SecurityOpt: ['seccomp=unconfined', 'apparmor=unconfined'],
      MaskedPaths: [],
      ReadonlyPaths: [],
      Mounts: [{ Type: 'bind', Source: folder, Target: '/probe', ReadOnly: true }],
      ...hostConfig,
    },
  };
  const create = { method: 'POST', path: '/containers/create', body } as const;
  const id = await connection.json<{ Id: string }, string>(create, ({ Id }) => Id);
  onTestFinished(() => removeContainer(connection, id));
  await startContainer(connection, id);
  return await text(await execInContainer(connection, id, { argv: ['sh', '-c', script] }));
}
