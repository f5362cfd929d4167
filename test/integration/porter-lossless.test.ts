/** On every kind of box that tests have: the host is killed again and again, and another one goes on. */

import { afterAll, beforeAll, describe, it } from 'vitest';
import { testEngine } from '../support/engine.ts';
import { type LossTrial, loseNothing } from '../support/lossless.ts';
import { copyImage, type PodmanService, startPodman } from '../support/podman.ts';
import { commandExists, requirement } from '../support/requires.ts';
import { createBox, type RuntimeBoxWish } from '../support/runtime-box.ts';
import { asRoot, onGvisor, when } from '../support/selection.ts';

const title =
  'not one byte of output and no exit code of a sandbox is lost, however often the host is killed';
const timeoutMs = 900_000;

/** The first host starts the box and holds its stdio; each later one comes by the relay. */
async function trial(wish: RuntimeBoxWish, size: Omit<LossTrial, 'door'>): Promise<void> {
  const { id } = await createBox(wish);
  const { endpoint, apiVersion = '' } = wish.connection;
  await loseNothing({
    ...size,
    door: (index) => ({ endpoint, apiVersion, id, kind: index === 0 ? 'attach' : 'relay' }),
  });
}

function onDocker(runtime?: string): RuntimeBoxWish {
  const { connection, image, labels } = testEngine();
  return { connection, image, labels: labels(), ...(runtime === undefined ? {} : { runtime }) };
}

describe('on runc', () => {
  it(title, () => trial(onDocker(), { name: 'runc', seed: 42 }), timeoutMs);
});

when(onGvisor, requirement('gVisor (runsc)', commandExists('runsc'))).describe('[R11] on gVisor', () => {
  // A box and a relay take longer to start there.
  it(
    title,
    () => trial(onDocker('runsc'), { name: 'gVisor', seed: 43, bytes: 8_000_000, kills: 4 }),
    timeoutMs,
  );
});

when(asRoot, requirement('Podman', commandExists('podman'))).describe('on Podman', () => {
  let podman: PodmanService;

  beforeAll(async () => {
    podman = await startPodman();
    const { connection, image } = testEngine();
    await copyImage(connection, podman.connection, image);
  });
  afterAll(async () => {
    await podman?.stop();
  });

  it(
    title,
    () =>
      trial(
        { ...onDocker(), connection: podman.connection },
        { name: 'Podman', seed: 44, bytes: 8_000_000, kills: 4 },
      ),
    timeoutMs,
  );
});
