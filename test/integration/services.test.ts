/** Services beside a sandbox: real PostgreSQL and Redis, their order, their failures, and that they live and go with it. */

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { killContainer } from '../../src/engines/docker/containers/kill.ts';
import { listNetworks } from '../../src/engines/docker/networks/list.ts';
import { removeNetwork } from '../../src/engines/docker/networks/remove.ts';
import { deferred } from '../../src/lib/deferred.ts';
import type { SallyEvent } from '../../src/protocol/events.ts';
import { label } from '../../src/protocol/labels.ts';
import { createBody } from '../../src/protocol/requests.ts';
import type { SpecInput } from '../../src/protocol/spec.ts';
import { newFolder, removeAfterwards, sally } from '../support/cli.ts';
import { testEngine } from '../support/engine.ts';
import { openSandboxes, runInSandbox, type TestSandboxes } from '../support/sandboxes.ts';
import {
  canMakeServiceImage,
  postgresCommand,
  redisCommand,
  serviceImage,
} from '../support/service-image.ts';

const usable = canMakeServiceImage();

let image = '';
beforeAll(async () => {
  if (usable) image = await serviceImage();
});

type Service = NonNullable<SpecInput['required_services']>[number];

const postgres = (more: Partial<Service> = {}): Service => ({
  name: 'db',
  image,
  command: [...postgresCommand],
  healthcheck: { test: ['pg_isready', '-h', '127.0.0.1', '-U', 'postgres'], interval: '200ms' },
  ...more,
});

const redis = (more: Partial<Service> = {}): Service => ({
  name: 'cache',
  image,
  command: [...redisCommand],
  healthcheck: { test: 'redis-cli ping | grep -q PONG', interval: '200ms' },
  ...more,
});

/** A small one that needs nothing but a shell. */
const plain = (name: string, script: string, more: Partial<Service> = {}): Service => ({
  name,
  image: testEngine().image,
  command: ['sh', '-c', script],
  ...more,
});

/** All that happened, until one of them fits. */
async function eventsUntil(
  { world }: TestSandboxes,
  fits: (event: SallyEvent) => boolean,
): Promise<readonly SallyEvent[]> {
  const seen: SallyEvent[] = [];
  const over = new AbortController();
  for await (const event of world.store.events.follow(0, over.signal)) {
    seen.push(event);
    if (fits(event)) over.abort();
  }
  return seen;
}

async function expectNothingLeft({ world }: TestSandboxes): Promise<void> {
  expect(await world.engine.list(world.owner)).toEqual([]);
  expect(await world.services.list(world.owner)).toEqual([]);
  expect(await world.services.networks(world.owner)).toEqual([]);
}

describe.runIf(usable)('a sandbox with a database and a cache', () => {
  test('[A1][A7][A8] starts them in order, reaches them by name, keeps their data, and takes all with it', async () => {
    const box = await openSandboxes();
    const sandbox = await box.make({
      spec: {
        image,
        required_services: [
          postgres({
            envs: { SECRET_OF_DB: 'hunter2-hunter2' },
            post_start_on_primary: [
              ['psql', '-h', 'db', '-U', 'postgres', '-c', 'create table if not exists seen (at int)'],
              ['psql', '-h', 'db', '-U', 'postgres', '-c', 'insert into seen values (1)'],
            ],
          }),
        ],
        optional_services: [redis()],
      },
    });
    const awaited = new Set(['db', 'cache', 'READY']);
    const all = await eventsUntil(box, (event) => {
      if (event.type === 'service.ready') awaited.delete(event.service);
      if (event.type === 'sandbox.state') awaited.delete(event.to);
      return awaited.size === 0;
    });
    const words = all.flatMap((event) => {
      if (event.type === 'sandbox.state') return [event.to];
      if (event.type === 'exec.started') return [`hook ${event.argv[0]}`];
      if (event.type === 'service.ready' && event.required) return [`ready ${event.service}`];
      return [];
    });
    expect(words).toEqual(['PENDING', 'hook psql', 'hook psql', 'ready db', 'READY']);
    expect(sandbox.view()).toMatchObject({
      isolation: { network: 'services' },
      services: [
        { name: 'db', required: true, state: 'READY' },
        { name: 'cache', required: false, state: 'READY' },
      ],
    });
    const ask = ['psql', '-h', 'db', '-U', 'postgres', '-Atc', 'select count(*) from seen'];
    expect(await runInSandbox(sandbox, ask)).toMatchObject({ stdout: { data: '1\n' } });
    expect(await runInSandbox(sandbox, ['redis-cli', '-h', 'cache', 'set', 'k', 'v'])).toMatchObject({
      stdout: { data: 'OK\n' },
    });
    expect((await sandbox.verify()).ok).toBe(true);
    // It began as root: it keeps what giving that up took, and nothing else.
    const db = sandbox.view().services[0]?.container_id ?? '';
    const { output: status } = await box.world.services.check(db, ['cat', '/proc/1/status'], {
      timeoutMs: 10_000,
    });
    expect(status).toMatch(/^Uid:\t999\t/m);
    expect(status).toMatch(/^CapBnd:\t00000000000000cb$/m);
    expect(status).toMatch(/^CapEff:\t0000000000000000$/m);
    expect(status).toMatch(/^NoNewPrivs:\t1$/m);

    await sandbox.pause();
    const frozen = await Promise.all(
      (await box.world.services.list(box.world.owner)).map(({ status }) => status),
    );
    expect(frozen).toEqual(['paused', 'paused']);
    await sandbox.resume();
    expect(await runInSandbox(sandbox, ask)).toMatchObject({ stdout: { data: '1\n' } });

    await sandbox.stop(5000);
    expect((await box.world.services.list(box.world.owner)).map(({ status }) => status)).toEqual([
      'stopped',
      'stopped',
    ]);
    expect(sandbox.view().services.map(({ state }) => state)).toEqual(['STOPPED', 'STOPPED']);
    // As `docker network prune` does to a network that no running container uses.
    const [network] = await box.world.services.networks(box.world.owner);
    await removeNetwork(testEngine().connection, network?.id ?? '');
    await sandbox.start();
    // The hooks are run again, on the data that was there.
    expect(await runInSandbox(sandbox, ask)).toMatchObject({ stdout: { data: '2\n' } });

    const chunks: Buffer[] = [];
    for await (const chunk of await sandbox.serviceLogs('db', { tail: 100 })) chunks.push(chunk);
    expect(Buffer.concat(chunks).toString()).toContain('ready to accept connections');
    await expect(sandbox.serviceLogs('nobody', {})).rejects.toMatchObject({ code: 'service_not_found' });

    await sandbox.remove({ force: true });
    await expectNothingLeft(box);
    expect(
      JSON.stringify(
        await eventsUntil(box, (event) => event.type === 'sandbox.state' && event.to === 'DELETED'),
      ),
    ).not.toContain('hunter2');
    expect(box.reports).toEqual([]);
  });
});

describe.runIf(usable)('a service that is', () => {
  test('[A8] required starts when the one before it is healthy', async () => {
    const box = await openSandboxes();
    const late = redis({ command: ['sh', '-c', 'sleep 1; exec "$@"', 'sh', ...redisCommand] });
    const asksOnce = 'redis-cli -h cache ping | grep -q PONG || exit 3; exec sleep 1000';
    const after = plain('after', asksOnce, { image });
    const sandbox = await box.make({ spec: { image, required_services: [late, after] } });
    expect(sandbox.view().services.map(({ state }) => state)).toEqual(['READY', 'READY']);
    await sandbox.remove({ force: true });
    await expectNothingLeft(box);
  });

  test('[A8] optional starts beside the required ones, which may depend on it', async () => {
    const box = await openSandboxes();
    const asks = { test: 'redis-cli -h cache ping | grep -q PONG', interval: '100ms', retries: 600 } as const;
    const needsCache = plain('late', 'exec sleep 1000', { image, healthcheck: asks });
    const sandbox = await box.make({
      spec: { image, required_services: [needsCache], optional_services: [redis()] },
    });
    expect(sandbox.state).toBe('READY');
    await sandbox.remove({ force: true });
    await expectNothingLeft(box);
  });
});

describe('a service that fails', () => {
  const make = async (box: TestSandboxes, spec: SpecInput) => await box.make({ spec });

  test.each([
    [
      'never becomes healthy',
      () =>
        plain('db', 'exec sleep 1000', {
          envs: { TOKEN: 'hunter2-hunter2' },
          healthcheck: { test: 'echo not yet $TOKEN; exit 1', interval: '50ms', retries: 2 },
        }),
      'service_failed',
      /service db did not become healthy: its check failed 2 times: not yet \*\*\*/,
    ],
    [
      'ends',
      () => plain('db', 'echo no disk; exit 3'),
      'service_failed',
      /service db ended with 3 before it was healthy: no disk/,
    ],
    [
      'has a hook that fails',
      () =>
        plain('db', 'exec sleep 1000', { post_start_on_primary: [['sh', '-c', 'echo no table; exit 9']] }),
      'service_hook_failed',
      /the hook "sh" of service db ended with 9: no table/,
    ],
  ] as const)('[A9] required, %s: nothing of the sandbox is left', async (_, service, code, words) => {
    const box = await openSandboxes();
    const failure = await make(box, {
      required_services: [service()],
      ...(code === 'service_hook_failed' ? { optional_services: [plain('beside', 'exec sleep 1000')] } : {}),
    }).catch((error: unknown) => error);
    expect(failure).toMatchObject({ code, message: expect.stringMatching(words) });
    await expectNothingLeft(box);
    expect(box.sandboxes.list().map(({ state }) => state)).toEqual(['FAILED']);
    expect(
      JSON.stringify(
        await eventsUntil(box, (event) => event.type === 'sandbox.state' && event.to === 'FAILED'),
      ),
    ).not.toContain('hunter2');
  });

  test('[A8] optional: the sandbox is ready without it, and its failure is an event, now or later', async () => {
    const box = await openSandboxes();
    const sandbox = await make(box, {
      optional_services: [
        plain('bad', 'exec sleep 1000', { healthcheck: { test: 'false', interval: '50ms', retries: 1 } }),
        plain('good', 'exec sleep 1000', { healthcheck: { test: ['CMD', 'true'] } }),
        plain('absent', 'true', { image: 'localhost:1/no/such:image' }),
      ],
    });
    const of = (name: string, type: string) => (event: SallyEvent) =>
      event.type === type && 'service' in event && event.service === name;
    await eventsUntil(box, of('bad', 'service.failed'));
    await eventsUntil(box, of('good', 'service.ready'));
    await eventsUntil(box, of('absent', 'service.failed'));
    expect(sandbox.state).toBe('READY');
    const networks = await listNetworks(testEngine().connection, [`${label.owner}=${box.world.owner}`]);
    expect(networks).toMatchObject([
      { name: sandbox.record.containerName, labels: { [label.id]: sandbox.id, [label.kind]: 'network' } },
    ]);
    const good = sandbox.view().services.find(({ name }) => name === 'good');
    await killContainer(testEngine().connection, good?.container_id ?? '', 'KILL');
    const events = await eventsUntil(box, of('good', 'service.ended'));
    expect(events.filter(of('good', 'service.failed'))).toEqual([]);
    expect(sandbox.view().services).toMatchObject([
      { name: 'bad', state: 'FAILED', reason: expect.stringContaining('its check failed once') },
      { name: 'good', state: 'FAILED', reason: expect.stringContaining('it ended with 137') },
      { name: 'absent', state: 'FAILED' },
    ]);
    expect(sandbox.state).toBe('READY');
    await sandbox.remove({ force: true });
    await expectNothingLeft(box);
  });
});

describe('a sandbox that is not wanted any more', () => {
  test('[A13] is removed while it waits for a service, with everything', async () => {
    // It was asked at least once, so it runs and is waited for.
    const checking = deferred<void>();
    const box = await openSandboxes();
    const { check: really } = box.world.services;
    box.world.services.check = async (...asked) => {
      checking.resolve();
      return await really(...asked);
    };
    const check = { test: 'false', interval: '50ms', retries: 10_000 };
    const sandbox = await box.sandboxes.create(
      createBody.parse({
        spec: {
          image: testEngine().image,
          required_services: [plain('db', 'exec sleep 1000', { healthcheck: check })],
        },
      }),
    );
    const ready = sandbox.ready().catch((error: unknown) => error);
    await checking.promise;
    await sandbox.remove({ force: true });
    expect(await ready).toMatchObject({ code: expect.any(String) });
    await expectNothingLeft(box);
  });
});

describe('what is remembered of services', () => {
  test('[A12][A16] a daemon that comes back goes on with them, one that lost its records finds them, and strangers are left alone', async () => {
    const first = await openSandboxes();
    const other = await openSandboxes();
    const spec = {
      name: 'kept',
      required_services: [plain('db', 'exec sleep 1000')],
      optional_services: [
        plain('slow', 'exec sleep 1000', {
          healthcheck: { test: 'test -e /tmp/ready', interval: '50ms', retries: 10_000 },
        }),
      ],
    } satisfies SpecInput;
    const before = await first.make({ spec });
    const theirs = await other.make({ spec: { required_services: [plain('db', 'exec sleep 1000')] } });
    await first.abandon();
    const second = await openSandboxes({ stateDir: first.stateDir });
    const sandbox = second.sandboxes.get('kept');
    expect(sandbox.view().services.map(({ state }) => state)).toEqual(['READY', 'PENDING']);
    const slow = before.view().services.find(({ name }) => name === 'slow')?.container_id ?? '';
    await second.world.services.check(slow, ['touch', '/tmp/ready'], { timeoutMs: 10_000 });
    await eventsUntil(second, (event) => event.type === 'service.ready' && event.service === 'slow');

    await second.abandon();
    await second.world.store.remove(sandbox.id);
    const third = await openSandboxes({ stateDir: first.stateDir });
    const adopted = third.sandboxes.get('kept');
    expect(adopted.state).toBe('STOPPED');
    await adopted.start();
    expect(adopted.view().services[0]).toMatchObject({ name: 'db', state: 'READY' });
    expect(adopted.view().services[0]?.container_id).toBe(before.view().services[0]?.container_id);

    // Its own container is gone, and so is its record: nobody asks for what is left.
    await third.abandon();
    await third.world.engine.remove(adopted.record.containerId ?? '');
    await third.world.store.remove(adopted.id);
    const fourth = await openSandboxes({ stateDir: first.stateDir });
    await expectNothingLeft(fourth);
    expect(theirs.view().services).toMatchObject([{ state: 'READY' }]);
    expect(await other.world.services.networks(other.world.owner)).toHaveLength(1);
  });
});

describe('services that cannot be', () => {
  test('[A9][O5] are refused before anything is made', async () => {
    const box = await openSandboxes();
    const { image: reference } = testEngine();
    const one = { name: 'db', image: reference };
    const refused = async (spec: SpecInput): Promise<unknown> => {
      try {
        return await box.sandboxes.create(createBody.parse({ spec: { image: reference, ...spec } }));
      } catch (error) {
        return error;
      }
    };
    expect(await refused({ profile: 'strict', required_services: [one] })).toMatchObject({
      code: 'refused_by_policy',
    });
    expect(await refused({ required_services: [one], optional_services: [one] })).toMatchObject({
      code: 'refused_by_policy',
      message: expect.stringContaining('two services are called db'),
    });
    if ((await box.world.engine.facts()).runtimes.includes('runsc')) {
      expect(await refused({ runtime: 'runsc', required_services: [one] })).toMatchObject({
        code: 'services_unsupported',
      });
    }
    await expectNothingLeft(box);
    expect(box.sandboxes.list()).toEqual([]);
  });
});

test('[A11] a service is told the uid and gid of the host, and its own variables win', async () => {
  const box = await openSandboxes();
  const service = plain('db', 'exec sleep 1000', { envs: { HOST_GID: '7' } });
  const sandbox = await box.make({ spec: { required_services: [service] } });
  const id = sandbox.view().services[0]?.container_id ?? '';
  const told = await box.world.services.check(id, ['sh', '-c', 'echo $HOST_UID:$HOST_GID'], {
    timeoutMs: 10_000,
  });
  expect(told.output.trim()).toBe(`${process.getuid?.()}:7`);
});

describe('on the command line', () => {
  test('[A7] a project asks for services after approval, and what they print and how they are is shown', async () => {
    const folder = await newFolder('own');
    const { image: reference } = testEngine();
    const spec = {
      image: reference,
      name: 'with-services',
      required_services: [
        { ...plain('db', 'echo hello from db; exec sleep 1000'), envs: { TOKEN: 'hunter2-hunter2' } },
      ],
    };
    await writeFile(join(folder, 'sallyport.yaml'), JSON.stringify(spec));
    const refused = await sally(['create'], { cwd: folder });
    expect(refused.code).not.toBe(0);
    expect(refused.stderr).toContain(`run the service db of the image ${reference}`);
    expect(refused.stderr).toContain('give the service db TOKEN="hunter2-hunter2"');
    removeAfterwards('with-services');
    expect(await sally(['create', '--approve'], { cwd: folder })).toMatchObject({ code: 0 });
    expect((await sally(['logs', 'with-services', '--service', 'db'])).stdout).toBe('hello from db\n');
    expect((await sally(['logs', 'with-services', '--service', 'nobody'])).stderr).toContain(
      'has no service',
    );
    const [shown] = JSON.parse((await sally(['inspect', 'with-services'])).stdout);
    expect(shown.services).toMatchObject([{ name: 'db', required: true, state: 'READY' }]);
    const events = await sally(['events', '--json']);
    expect(`${events.stdout}${JSON.stringify(shown)}`).not.toContain('hunter2');
  });
});
