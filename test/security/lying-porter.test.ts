/**
 * A whole sandbox whose porter was replaced: it greets, and then lies or says nothing. The box itself is real, so what the daemon
 * does about it is seen at the engine.
 */

import { describe, expect, it } from 'vitest';
import { deferred } from '../../src/lib/deferred.ts';
import { frameType } from '../../src/porter/frame.ts';
import { PayloadWriter } from '../../src/porter/payload.ts';
import { isSallyportError } from '../../src/protocol/errors.ts';
import { lyingDoor } from '../support/lying-door.ts';
import { openSandboxes, startInSandbox } from '../support/sandboxes.ts';
import { until } from '../support/until.ts';

/** A moment after its start the daemon leaves the stream that it attached to for a relay. */
const onDocker = { on: 'docker' } as const;

describe('[N5] a porter that greets and never answers again', () => {
  it('does not keep its sandbox from being stopped and removed', async () => {
    const begun = deferred<void>();
    const asked = deferred<void>();
    const { make, world } = await openSandboxes({
      ...onDocker,
      relay: async () => {
        await begun.promise;
        return lyingDoor(({ type }) => {
          if (type === frameType.execs) asked.resolve();
        });
      },
    });
    const box = await make();
    const exec = await startInSandbox(box, ['sleep', '600'], { background: true });
    begun.resolve();
    await asked.promise;
    await box.stop(0);
    expect(box.state).toBe('STOPPED');
    expect(exec.view()).toMatchObject({ state: 'lost' });
    await box.remove({ force: true });
    expect(await world.engine.list(world.owner)).toEqual([]);
  });

  it('does not keep the next daemon from removing it', async () => {
    const { make, stateDir, abandon } = await openSandboxes(onDocker);
    const first = await make();
    await startInSandbox(first, ['sleep', '600'], { background: true });
    await abandon();
    const { sandboxes, world } = await openSandboxes({
      ...onDocker,
      stateDir,
      relay: async () => lyingDoor(() => {}),
    });
    const box = sandboxes.get(first.id);
    await box.remove({ force: true });
    expect(await world.engine.list(world.owner)).toEqual([]);
  });
});

describe('[N5] a porter that takes a command and never says how it ended', () => {
  /** From the first relay on. */
  async function boxThatTakesAll() {
    const replaced = deferred<void>();
    const opened = await openSandboxes({
      ...onDocker,
      overduePatienceMs: 1000,
      relay: async () =>
        lyingDoor(
          ({ type, stream }, say) => {
            if (type === frameType.exec) say(frameType.started, stream, new PayloadWriter().u32(7).end());
          },
          { onWelcome: () => replaced.resolve() },
        ),
    });
    const box = await opened.make();
    await replaced.promise;
    return { box, world: opened.world };
  }

  it('is stopped when the deadline of the command is over', async () => {
    const { box, world } = await boxThatTakesAll();
    const exec = await startInSandbox(box, ['sleep', '600'], { timeout_ms: 100, grace_ms: 0 });
    const { exec: view } = await exec.result();
    expect(view).toMatchObject({ state: 'lost', error: { code: 'exec_lost' } });
    await until(() => box.state === 'FAILED');
    expect(box.record.reason).toMatch(/did not end sleep in time/);
    expect((await world.engine.list(world.owner)).map(({ status }) => status)).not.toContain('running');
  });

  it('is stopped when it does not confirm a kill', async () => {
    const { box } = await boxThatTakesAll();
    const exec = await startInSandbox(box, ['sleep', '600'], { timeout_ms: 0, background: true });
    await exec.kill(0);
    expect(exec.view()).toMatchObject({ state: 'lost' });
    await until(() => box.state === 'FAILED');
  });

  it('does not keep `sally verify` waiting for ever', async () => {
    const { make } = await openSandboxes({ ...onDocker, relay: async () => lyingDoor(() => {}) });
    const box = await make();
    const verified = until(async () => {
      // By the attached stream it is true.
      return await box.verify().then(
        () => false,
        (error: unknown) => isSallyportError(error, 'sandbox_state'),
      );
    });
    await verified;
  });
});

describe('[N5] a porter that ends each connection as soon as it is made', () => {
  it.each([
    ['by closing it', undefined],
    ['by saying that another host took over', frameType.superseded],
  ] as const)(
    '%s, is asked again after ever longer pauses, and its sandbox can be stopped',
    async (_how, type) => {
      const openedMs: number[] = [];
      const { make, world } = await openSandboxes({
        ...onDocker,
        relay: async () => {
          openedMs.push(performance.now());
          return lyingDoor(() => {}, {
            onWelcome: (say, door) => {
              if (type === undefined) door.push(null);
              else say(type, 0);
            },
          });
        },
      });
      const box = await make();
      await until(() => openedMs.length === 4);
      const pauses = openedMs.map((atMs, index) => atMs - (openedMs[index - 1] ?? atMs));
      // The first comes by itself, the next at once; from then on there are pauses.
      expect(pauses[3]).toBeGreaterThan(400);
      await box.stop(0);
      expect(box.state).toBe('STOPPED');
      expect((await world.engine.list(world.owner)).map(({ status }) => status)).not.toContain('running');
    },
  );

  it('by refusing whom it has welcomed, loses its sandbox', async () => {
    const { make } = await openSandboxes({
      ...onDocker,
      relay: async () =>
        lyingDoor(() => {}, {
          onWelcome: (say) =>
            say(frameType.refused, 0, new PayloadWriter().u16(1).u16(0).u32(5).u32(1).bytes('x').end()),
        }),
    });
    const box = await make();
    await until(() => box.state === 'FAILED');
    expect(box.record.reason).toMatch(/broke the protocol/);
  });
});
