/**
 * The private engine's own bridge device. It never uses `docker0`, which belongs to the machine's own engine: two daemons
 * with one bridge change its address under each other, and `--bridge=none` deletes it, whoever made it.
 */

import { createHash } from 'node:crypto';
import { SallyportError } from '../../protocol/errors.ts';
import { runCommand } from '../run-command.ts';
import type { PrivateEnginePaths } from './paths.ts';

export interface Bridge {
  /** At most 15 bytes: the kernel's limit for the name of a device. */
  readonly name: string;
  /** Off Docker's default pool (172.17.0.0/16 and on), so that it lives beside another engine and most VPNs. */
  readonly address: string;
}

export function bridgeOf(paths: Pick<PrivateEnginePaths, 'runDir' | 'separate'>): Bridge {
  if (!paths.separate) return { name: 'sally0', address: '10.213.0.1/24' };
  const digest = createHash('sha256').update(paths.runDir).digest();
  return { name: `sally${digest.toString('hex').slice(0, 8)}`, address: `10.215.${digest[8]}.1/24` };
}

export async function makeBridge(
  bridge: Bridge,
  environment: Readonly<Record<string, string>>,
): Promise<void> {
  const ip = (...args: readonly string[]) => runCommand(['ip', ...args], { environment, timeoutMs: 10_000 });
  const made = await ip('link', 'add', bridge.name, 'type', 'bridge');
  // One that is there is ours, left by a crash or made by another that starts at this moment.
  if (made.exitCode !== 0 && (await ip('link', 'show', 'dev', bridge.name)).exitCode !== 0) {
    throw failed(bridge, made.outputTail);
  }
  const addressed = await ip('address', 'replace', bridge.address, 'dev', bridge.name);
  if (addressed.exitCode !== 0) throw failed(bridge, addressed.outputTail);
}

/** Absent is not an error. */
export async function removeBridge(
  bridge: Bridge,
  environment: Readonly<Record<string, string>>,
): Promise<void> {
  await runCommand(['ip', 'link', 'delete', bridge.name], { environment, timeoutMs: 10_000 });
}

function failed({ name }: Bridge, reason: string): SallyportError {
  return new SallyportError(
    'setup_failed',
    `the bridge ${name} of the private engine could not be made: ${reason}`,
    {
      advice: 'It is made with `ip`: install the package iproute2, and run this as root.',
    },
  );
}
