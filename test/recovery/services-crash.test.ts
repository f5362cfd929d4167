/** The daemon is killed at every step of making and removing a sandbox with services. Nothing of it is left. */

import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { SandboxView } from '../../src/protocol/views.ts';
import { type DaemonHome, daemonHome, type TestDaemon } from '../support/daemon-home.ts';
import { belongings } from '../support/daemon-world.ts';
import { testEngine } from '../support/engine.ts';
import { full } from '../support/requires.ts';

const service = (name: string) => ({
  name,
  image: testEngine().image,
  command: ['sh', '-c', 'exec sleep 1000'],
});

const create = async (daemon: TestDaemon): Promise<SandboxView> =>
  await daemon.client.json<SandboxView>('POST', '/v1/sandboxes', {
    body: {
      spec: {
        name: 'victim',
        image: testEngine().image,
        required_services: [{ ...service('db'), post_start_on_primary: [['true']] }],
        optional_services: [service('cache')],
      },
    },
  });

async function expectNothingLeft(home: DaemonHome): Promise<void> {
  expect(await belongings(home)).toMatchObject({ containers: [], services: [], networks: [] });
}

describe('[A9][A16] killed while a sandbox with services is made', () => {
  const some = ['create.network', 'create.services', 'create.hooks'];
  const points = full ? [...some, 'create.healthy', 'create.greeted'] : some;
  test.each(points)('at %s: no container and no network is left, and it can be made again', async (point) => {
    const home = await daemonHome();
    const first = await home.start({ SALLYPORT_CRASH_AT: point });
    await expect(create(first)).rejects.toBeDefined();
    await first.ended;
    expect(first.child.signalCode).toBe('SIGKILL');
    // The positive control: there was something to be left.
    expect((await belongings(home)).networks).toHaveLength(1);
    const next = await home.start();
    await expectNothingLeft(home);
    const view = await next.client.json<SandboxView>('POST', '/v1/sandboxes/victim/start');
    expect(view).toMatchObject({
      state: 'READY',
      services: [{ name: 'db', state: 'READY' }, { name: 'cache' }],
    });
    await next.client.json('DELETE', '/v1/sandboxes/victim');
    await expectNothingLeft(home);
  });
});

describe('[A9][A16] killed while a sandbox with services is removed', () => {
  test.each(full ? ['remove.container', 'remove.services'] : ['remove.container'])(
    'at %s: the next daemon finishes it',
    async (point) => {
      const home = await daemonHome();
      const first = await home.start({ SALLYPORT_CRASH_AT: point });
      await create(first);
      await first.client.json('DELETE', '/v1/sandboxes/victim').catch(() => {});
      await first.ended;
      await home.start();
      await expectNothingLeft(home);
      expect(await readdir(join(home.stateDir, 'sandboxes'))).toEqual([]);
    },
  );
});
