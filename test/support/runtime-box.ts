/** A box as Sallyport makes it, with porter as its first process, on any engine and runtime; gone when the test ends. */

import { randomBytes } from 'node:crypto';
import type { Duplex } from 'node:stream';
import { onTestFinished } from 'vitest';
import { dockerBoxEngine } from '../../src/engines/docker/box-engine.ts';
import { execInContainer } from '../../src/engines/docker/containers/exec.ts';
import type { EngineConnection } from '../../src/engines/docker/wire/connection.ts';
import { hardenedBox } from '../../src/policy/hardening.ts';
import { readPorterBinary } from '../../src/porter/binary.ts';
import { Porter } from '../../src/porter/porter.ts';
import type { BoxDoor, BoxEngine } from '../../src/sandboxes/ports.ts';

export interface RuntimeBox {
  readonly id: string;
  readonly porter: Porter;
  readonly door: BoxDoor;
  readonly token: Buffer;
}

export interface RuntimeBoxWish {
  readonly connection: EngineConnection;
  readonly image: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly runtime?: string;
  readonly pids?: number;
}

/** Created and not started. Lives on when its host goes away, as a sandbox of the daemon does. */
export async function createBox(
  wish: RuntimeBoxWish,
): Promise<{ readonly engine: BoxEngine; readonly id: string }> {
  const { connection, image, labels, runtime, pids } = wish;
  const engine = dockerBoxEngine(connection, readPorterBinary);
  const porterVolume = await engine.providePorter(image);
  const id = await engine.create(
    hardenedBox({
      name: `sallyport-test-${randomBytes(6).toString('hex')}`,
      image,
      labels,
      porterVolume,
      endsWithHost: false,
      ...(runtime === undefined ? {} : { runtime }),
      ...(pids === undefined ? {} : { pids }),
    }),
  );
  onTestFinished(() => engine.remove(id));
  return { engine, id };
}

export async function openBox(wish: RuntimeBoxWish): Promise<RuntimeBox> {
  const { engine, id } = await createBox(wish);
  const door = await engine.attach(id);
  onTestFinished(() => {
    door.destroy();
  });
  await engine.start(id);
  const token = randomBytes(32);
  const porter = await Porter.open(door, { epoch: 1, token, timeoutMs: 20_000 });
  onTestFinished(() => porter.close());
  return { id, porter, door, token };
}

/** The second door: an engine exec of `porter relay`, which is a fresh stream to the same porter. */
export async function openRelay(connection: EngineConnection, id: string): Promise<Duplex> {
  const relay = await dockerBoxEngine(connection, readPorterBinary).openRelay(id);
  onTestFinished(() => {
    relay.destroy();
  });
  return relay;
}

/** By the engine and not by porter, so that porter's filter is not upon it. */
export async function engineExec(
  connection: EngineConnection,
  id: string,
  argv: readonly string[],
): Promise<Duplex> {
  const door = await execInContainer(connection, id, { argv });
  onTestFinished(() => {
    door.destroy();
  });
  return door;
}

/** As a new daemon does after the death of the one before: a higher epoch on a new stream. */
export async function takeOver(
  connection: EngineConnection,
  box: RuntimeBox,
  epoch: number,
): Promise<Porter> {
  const porter = await Porter.open(await openRelay(connection, box.id), {
    epoch,
    token: box.token,
    timeoutMs: 20_000,
  });
  onTestFinished(() => porter.close());
  return porter;
}
