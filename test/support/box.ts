/** A real sandbox on the engine, with porter as its first process. */

import { randomBytes } from 'node:crypto';
import { inject, onTestFinished } from 'vitest';
import { dockerBoxEngine } from '../../src/engines/docker/box-engine.ts';
import { hardenedBox } from '../../src/policy/hardening.ts';
import { readPorterBinary } from '../../src/porter/binary.ts';
import type { Porter } from '../../src/porter/porter.ts';
import type { BoxEngine } from '../../src/sandboxes/ports.ts';
import { testEngine } from './engine.ts';
import { greet } from './porter-child.ts';

export interface TestBox {
  readonly engine: BoxEngine;
  readonly id: string;
}

/** Created and not started; removed when the test ends. */
export async function makeBox(more: { readonly pids?: number } = {}): Promise<TestBox> {
  const { connection, image, labels } = testEngine();
  const engine = dockerBoxEngine(connection, readPorterBinary);
  const box = hardenedBox({
    name: `sallyport-test-${inject('runId')}-${randomBytes(4).toString('hex')}`,
    image,
    porterVolume: await engine.providePorter(image),
    endsWithHost: false,
    labels: labels(),
    ...more,
  });
  const id = await engine.create(box);
  onTestFinished(() => engine.remove(id));
  return { engine, id };
}

export async function startBox(
  more: { readonly pids?: number } = {},
): Promise<TestBox & { readonly porter: Porter }> {
  const box = await makeBox(more);
  const door = await box.engine.attach(box.id);
  await box.engine.start(box.id);
  return { ...box, porter: await greet(door, 1) };
}
