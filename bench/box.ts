/** The engine, the test image and a box with porter, as the benchmarks use them. */

import { randomBytes } from 'node:crypto';
import { dockerBoxEngine } from '../src/engines/docker/box-engine.ts';
import { engineVersion } from '../src/engines/docker/system/version.ts';
import type { EngineConnection } from '../src/engines/docker/wire/connection.ts';
import { hardenedBox } from '../src/policy/hardening.ts';
import { readPorterBinary } from '../src/porter/binary.ts';
import { OutputQueue } from '../src/porter/output-queue.ts';
import { type OutputSink, queueSink } from '../src/porter/output-sink.ts';
import { Porter } from '../src/porter/porter.ts';
import type { BoxRequest } from '../src/protocol/box.ts';
import { ownedLabels } from '../src/protocol/labels.ts';
import type { BoxEngine } from '../src/sandboxes/ports.ts';
import { benchConnection, testImage } from './engine.ts';

export const benchEnv = { PATH: '/usr/bin:/bin' };

export interface BenchEngine {
  readonly connection: EngineConnection;
  readonly engine: BoxEngine;
  readonly image: string;
  readonly newBox: () => Promise<BoxRequest>;
  readonly versions: () => Promise<Record<string, string>>;
}

export async function openBenchEngine(runtime?: string): Promise<BenchEngine> {
  const connection = await benchConnection();
  const image = await testImage(connection);
  const engine = dockerBoxEngine(connection, readPorterBinary);
  const porterVolume = await engine.providePorter(image);
  return {
    connection,
    engine,
    image,
    newBox: async () =>
      hardenedBox({
        name: `sallyport-bench-${randomBytes(4).toString('hex')}`,
        image,
        porterVolume,
        labels: ownedLabels('sandbox'),
        endsWithHost: false,
        ...(runtime === undefined ? {} : { runtime }),
      }),
    versions: async () => {
      const { engine: version, components } = await engineVersion(connection);
      return { engine: version, runtime: runtime ?? `runc ${components['runc'] ?? 'unknown'}` };
    },
  };
}

/** Runs `work` with a porter in a box that is gone afterwards. */
export async function withPorter(
  { engine, newBox }: BenchEngine,
  work: (porter: Porter, id: string) => Promise<void>,
): Promise<void> {
  const id = await engine.create(await newBox());
  try {
    const door = await engine.attach(id);
    await engine.start(id);
    const porter = await Porter.open(door, { epoch: 1, token: randomBytes(32), timeoutMs: 20_000 });
    await work(porter, id);
    porter.close();
  } finally {
    await engine.remove(id);
  }
}

/** Takes everything at once, as a host that keeps nothing. */
export function nowhere(): OutputSink {
  const unread = new OutputQueue();
  unread.discard();
  return queueSink(unread, unread);
}

export function numberOption(args: readonly string[], name: string, fallback: number): number {
  return Number(args.find((arg) => arg.startsWith(`--${name}=`))?.split('=')[1] ?? fallback);
}
