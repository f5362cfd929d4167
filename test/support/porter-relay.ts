/** A porter that outlives its host, and further hosts that come by its second door. */

import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import type { Duplex } from 'node:stream';
import { onTestFinished } from 'vitest';
import { porterBinaryPath } from '../../src/porter/binary.ts';
import { Porter } from '../../src/porter/porter.ts';
import { PipeDuplex } from './pipe-duplex.ts';
import { nativeArchitecture, type PorterChild, startPorter } from './porter-child.ts';

export interface LastingPorter {
  readonly started: PorterChild;
  readonly first: Porter;
  /** A new host, by `porter relay`. */
  readonly takeOver: () => Promise<Porter>;
}

export async function lastingPorter(): Promise<LastingPorter> {
  const token = randomBytes(32);
  const started = startPorter([]);
  let epoch = 1;
  const open = async (stream: Duplex): Promise<Porter> => {
    const porter = await Porter.open(stream, { epoch: epoch++, token, timeoutMs: 10_000 });
    onTestFinished(() => porter.close());
    return porter;
  };
  const takeOver = async (): Promise<Porter> => {
    const relay = spawn(porterBinaryPath(nativeArchitecture), ['relay', String(started.child.pid)], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    onTestFinished(() => {
      relay.kill('SIGKILL');
    });
    relay.stdin.on('error', () => {});
    return await open(new PipeDuplex(relay.stdout, relay.stdin));
  };
  return { started, first: await open(started.stream), takeOver };
}
