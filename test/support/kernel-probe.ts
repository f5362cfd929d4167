/** `test/security/probe.c`: what a program tries on processes and on the kernel, with the errno of each act. */

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import type { Porter } from '../../src/porter/porter.ts';
import { temporaryFolder } from './little-engine.ts';
import { runIn } from './porter-child.ts';

export const EPERM = 1;
export const EBADF = 9;
export const EACCES = 13;
const EINVAL = 22;
const ENOSPC = 28;
const ENOSYS = 38;
const EPROTONOSUPPORT = 93;
const EAFNOSUPPORT = 97;

export type Findings = Readonly<Record<string, number>>;

export function compileProbe(): string {
  const out = join(temporaryFolder(), 'probe');
  const source = fileURLToPath(new URL('../security/probe.c', import.meta.url));
  execFileSync('gcc', ['-static', '-Os', '-o', out, source]);
  return out;
}

/** Puts the program into a sandbox, at `/tmp/probe`. */
export async function putProbe(porter: Porter): Promise<void> {
  const input = readFileSync(compileProbe());
  await runIn(porter, ['bash', '-c', 'cat > /tmp/probe && chmod 755 /tmp/probe'], { input });
}

export function readFindings(output: string): Findings {
  const rows = output.trim().split('\n');
  return Object.fromEntries(
    rows.map((line) => line.split(' ')).map(([name = '', errno = '']) => [name, Number(errno)]),
  );
}

export async function probe(porter: Porter, ...words: readonly string[]): Promise<Findings> {
  return readFindings((await runIn(porter, ['/tmp/probe', ...words])).stdout);
}

/** What an engine starts in a box has a parent outside, which shows as 0. In a script of bash: `found` is its pid. */
export const startedByEngine =
  'for stat in /proc/[1-9]*/stat; do read -r pid _ _ parent _ < $stat; [ $parent = 0 ] && [ $pid != 1 ] && found=$pid; done 2>/dev/null; [ -n "$found" ]';

/** Up to Engine 20.10 Docker's own profile has no process_vm_readv for anybody; then its control is the test without an engine. */
export const perhapsRefusedByTheEngine = [0, EPERM];

/** By the same program without a filter: on this machine, as root. */
export function callsOutside(): Findings {
  const words = ['calls', temporaryFolder()];
  return readFindings(
    execFileSync(compileProbe(), words, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] }),
  );
}

/** What is refused, and with what. */
export const refusedCalls: Findings = {
  'socket-netlink-audit': EAFNOSUPPORT,
  'socket-vsock': EAFNOSUPPORT,
  'socket-alg': EAFNOSUPPORT,
  'socket-packet': EAFNOSUPPORT,
  io_uring: EPERM,
  fanotify: EPERM,
  aio: ENOSYS,
  keyctl: EPERM,
  add_key: EPERM,
  bpf: EPERM,
  perf: EPERM,
  userfaultfd: EPERM,
  'unshare-user': EPERM,
  'unshare-mounts': EPERM,
  'unshare-network': EPERM,
  'clone-user': EPERM,
  'clone-pid': EPERM,
  clone3: ENOSYS,
  mount: EPERM,
  fsopen: EPERM,
  open_by_handle_at: EPERM,
  chroot: EPERM,
  'renice-user': EPERM,
  'owner-by-pointer': EPERM,
  ...(process.arch === 'x64' ? { x32: ENOSYS } : {}),
};

/** What ordinary programs need of the same calls. */
export const allowedCalls: Findings = Object.fromEntries(
  ['unix', 'inet', 'inet6', 'netlink-route']
    .map((family) => `socket-${family}`)
    .concat('clone-plain', 'renice-self', 'owner-self')
    .map((name) => [name, 0]),
);

/**
 * Calls that a kernel may lack or be told to refuse to all, and what it says then. Where it does, nothing can show that it is
 * the sandbox that refuses: the refusal is without a control, and the test says so. Seen on kernel 6.18: AF_ALG and x32.
 */
const mayBeAbsent: Readonly<Record<string, readonly number[]>> = {
  'socket-alg': [EAFNOSUPPORT],
  'socket-vsock': [EAFNOSUPPORT],
  'socket-netlink-audit': [EPROTONOSUPPORT],
  x32: [ENOSYS],
  // EPERM: by the setting kernel.io_uring_disabled.
  io_uring: [ENOSYS, EPERM],
  fanotify: [ENOSYS],
  aio: [ENOSYS],
  bpf: [ENOSYS],
  perf: [ENOSYS],
  userfaultfd: [ENOSYS],
  keyctl: [ENOSYS],
  add_key: [ENOSYS],
  // ENOSPC: by the setting user.max_user_namespaces.
  'unshare-user': [EINVAL, ENOSPC],
  'clone-user': [EINVAL, ENOSPC],
};

/** Each that was refused must be done by a process without the filter. Says which ones this kernel refuses to all. */
export function expectControls(outside: Findings): void {
  const without = Object.keys(refusedCalls).filter((name) => outside[name] !== 0);
  for (const name of without) expect(mayBeAbsent[name] ?? [], `control of ${name}`).toContain(outside[name]);
  if (without.length > 0) process.stderr.write(`without a control on this kernel: ${without.join(', ')}\n`);
  expect(outside).toMatchObject(allowedCalls);
}
