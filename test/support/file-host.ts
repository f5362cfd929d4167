/**
 * A host that may be killed at any moment: connects to a porter, starts or goes on with exec 1, and appends its output to a
 * file. What it knows of the past is the length of that file. Prints the exec's result as JSON.
 */

import { spawn } from 'node:child_process';
import { openSync, statSync, writeSync } from 'node:fs';
import type { Duplex } from 'node:stream';
import { dockerBoxEngine } from '../../src/engines/docker/box-engine.ts';
import { parseEndpoint } from '../../src/engines/docker/endpoint/endpoint.ts';
import { EngineConnection } from '../../src/engines/docker/wire/connection.ts';
import { openTransport } from '../../src/engines/docker/wire/transport.ts';
import type { OutputSink } from '../../src/porter/output-sink.ts';
import { Porter } from '../../src/porter/porter.ts';
import { PipeDuplex } from './pipe-duplex.ts';

export interface FileHostOrder {
  readonly door:
    | { readonly kind: 'child'; readonly porter: string; readonly pid: number }
    | {
        readonly kind: 'attach' | 'relay';
        readonly endpoint: string;
        readonly apiVersion: string;
        readonly id: string;
      };
  readonly epoch: number;
  readonly token: string;
  readonly file: string;
  readonly argv: readonly [string, ...string[]];
}

const stream = 1;
const order = JSON.parse(process.argv[2] ?? '') as FileHostOrder;

async function openDoor(): Promise<Duplex> {
  const { door } = order;
  if (door.kind === 'child') {
    const relay = spawn(door.porter, ['relay', String(door.pid)], { stdio: ['pipe', 'pipe', 'inherit'] });
    return new PipeDuplex(relay.stdout, relay.stdin);
  }
  const { endpoint, apiVersion, id, kind } = door;
  const connection = new EngineConnection(openTransport(parseEndpoint(endpoint)), endpoint, apiVersion);
  const engine = dockerBoxEngine(connection, () => Promise.reject(new Error('not needed')));
  if (kind === 'relay') return await engine.openRelay(id);
  const attached = await engine.attach(id);
  await engine.start(id);
  return attached;
}

const porter = await Porter.open(await openDoor(), {
  epoch: order.epoch,
  token: Buffer.from(order.token, 'hex'),
  timeoutMs: 20_000,
});
const file = openSync(order.file, 'a');
const sink: OutputSink = {
  write: async (_channel, _offset, data) => {
    for (let done = 0; done < data.length; ) done += writeSync(file, data, done);
  },
  end: () => {},
};
const known = (await porter.list()).find((exec) => exec.stream === stream);
const exec =
  known === undefined
    ? porter.exec({ argv: order.argv, env: { PATH: '/usr/bin:/bin' }, cwd: '/' }, sink, stream)
    : porter.resume(known, { stdout: statSync(order.file).size, stderr: 0 }, sink);
const result = await exec.result;
process.stdout.write(JSON.stringify(result), () => process.exit(0));
