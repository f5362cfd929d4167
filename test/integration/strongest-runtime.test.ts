/** [R11] `runtime: strongest`: on engines that list runtimes which work, fail, or cannot do what is asked. */

import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, inject, test } from 'vitest';
import { connect } from '../../src/engines/docker/connect.ts';
import { listContainers } from '../../src/engines/docker/containers/list.ts';
import type { EngineConnection } from '../../src/engines/docker/wire/connection.ts';
import type { BoxRequest } from '../../src/protocol/box.ts';
import type { SallyEvent } from '../../src/protocol/events.ts';
import { label } from '../../src/protocol/labels.ts';
import { createBody } from '../../src/protocol/requests.ts';
import type { SpecInput } from '../../src/protocol/spec.ts';
import type { SandboxView } from '../../src/protocol/views.ts';
import { findInPath, runtimesConfig } from '../../src/setup/private-engine/runtimes.ts';
import { makeBox, newFolder, removeAfterwards, sally } from '../support/cli.ts';
import { daemonHome } from '../support/daemon-home.ts';
import { testEngine } from '../support/engine.ts';
import { copyTestImage, ownEngine } from '../support/own-engine.ts';
import { commandExists, requirement } from '../support/requires.ts';
import { openSandboxes, runInSandbox, type TestSandboxes } from '../support/sandboxes.ts';
import { asRoot, isSelected, onGvisor, when } from '../support/selection.ts';
import { until } from '../support/until.ts';

const hasGvisor =
  isSelected(onGvisor, 'the same with gVisor') && requirement('gVisor (runsc)', commandExists('runsc'));
const gvisor = hasGvisor
  ? JSON.parse(runtimesConfig(findInPath('runsc', process.env['PATH']))).runtimes
  : undefined;
/** Starts nothing: what an engine lists and does not have. */
const broken = { path: '/bin/false' };

/** An engine of the test's own with this configuration, and the test image. */
async function engineWith(configuration: object): Promise<EngineConnection> {
  const engine = await ownEngine();
  await writeFile(join(engine.folder, 'daemon.json'), JSON.stringify(configuration));
  await engine.start();
  await copyTestImage(engine.socket);
  return await connect({ kind: 'unix', path: engine.socket });
}

/** What was noted about the runtime of a sandbox, in order. */
async function notesOf({ sandboxes }: TestSandboxes, id: string) {
  const over = new AbortController();
  const notes: Extract<SallyEvent, { type: 'sandbox.note' }>[] = [];
  const last = sandboxes.events.sequence;
  for await (const event of sandboxes.events.follow(0, over.signal)) {
    const isMine = event.type === 'sandbox.note' && event.sandbox_id === id;
    if (isMine && event.code.startsWith('runtime_')) notes.push(event);
    if (event.sequence >= last) over.abort();
  }
  return notes;
}

const bodyOf = (spec: SpecInput, reuse = false) =>
  createBody.parse({ spec: { image: testEngine().image, ...spec }, reuse });

when(asRoot).describe('[R11] the strongest runtime', () => {
  test('is the first that passes its check, is remembered, and stays that of its sandbox', async () => {
    const connection = await engineWith({ runtimes: { kata: broken, krun: broken, ...gvisor } });
    const asked: BoxRequest[] = [];
    const tamper = (box: BoxRequest): BoxRequest => {
      asked.push(box);
      return box;
    };
    const checked = (): readonly unknown[] =>
      asked.filter(({ name }) => name.startsWith('sallyport-runtime-')).map(({ runtime }) => runtime);
    const opened = await openSandboxes({ connection, tamper });
    const { sandboxes, make } = opened;
    const runtime = hasGvisor ? 'runsc' : 'runc';
    const isolation = { runtime, level: hasGvisor ? 'gvisor' : 'container' };
    const spec = { name: 'one', runtime: 'strongest' };

    const before = await sandboxes.explain(bodyOf(spec));
    expect(before.box.runtime).toBe('kata');
    expect(before.notes).toEqual([expect.stringMatching(/kata \(vm\) if it passes a check .* else krun/)]);
    expect(asked).toEqual([]);

    // Two that come at once wait for the same check.
    const [one, two] = await Promise.all([make({ spec }), make({ spec: { ...spec, name: 'two' } })]);
    const strong = hasGvisor ? ['kata', 'krun', 'runsc'] : ['kata', 'krun'];
    expect(checked()).toEqual(strong);
    for (const box of [one, two]) {
      expect(box.view().isolation).toMatchObject(isolation);
      expect(await notesOf(opened, box.id)).toMatchObject([
        { code: 'runtime_failed', message: expect.stringContaining('runtime kata (vm) is not used') },
        { code: 'runtime_failed', message: expect.stringContaining('runtime krun (vm) is not used') },
        { code: 'runtime_chosen', message: expect.stringContaining(`runtime ${runtime} (`) },
      ]);
    }
    if (hasGvisor) expect((await runInSandbox(one, ['dmesg'])).stdout.data).toContain('gVisor');
    expect((await runInSandbox(one, ['echo', 'runs'])).stdout.data).toBe('runs\n');
    expect(await listContainers(connection, [`${label.kind}=runtime-check`])).toEqual([]);

    const after = await sandboxes.explain(bodyOf({ ...spec, name: 'three' }));
    expect(after.box.runtime).toBe(runtime);
    expect(after.notes).toEqual([`the runtime would be ${runtime} (${isolation.level})`]);
    await make({ spec: { ...spec, name: 'three' } });
    expect(checked()).toEqual(strong);

    // The same spec finds its sandbox again; the runtime that was chosen is another spec.
    expect((await sandboxes.create(bodyOf(spec, true))).id).toBe(one.id);
    await expect(sandboxes.create(bodyOf({ ...spec, runtime }, true))).rejects.toMatchObject({
      code: 'sandbox_exists',
      details: { fields: ['runtime'] },
    });
    await one.stop(0);
    await one.start();
    expect(one.view().isolation).toMatchObject(isolation);

    await opened.abandon();
    const next = await openSandboxes({ connection, stateDir: opened.stateDir });
    expect(next.sandboxes.get('one').view().isolation).toMatchObject(isolation);
    await next.abandon();
    await next.world.store.remove(one.id);
    const adopting = await openSandboxes({ connection, stateDir: opened.stateDir });
    const adopted = adopting.sandboxes.get('one');
    expect(adopted.view()).toMatchObject({ state: 'STOPPED', isolation });
    await adopted.start();
    expect((await runInSandbox(adopted, ['echo', 'again'])).stdout.data).toBe('again\n');
    expect((await adopting.sandboxes.create(bodyOf(spec, true))).id).toBe(one.id);
  }, 180_000);

  test('fails as any other where none works, and leaves nothing', async () => {
    const connection = await engineWith({
      'default-runtime': 'plain',
      runtimes: { plain: broken, kata: broken },
    });
    const { sandboxes, world } = await openSandboxes({ connection });
    const failed = await sandboxes.create(bodyOf({ runtime: 'strongest' }));
    const named = await sandboxes.create(bodyOf({ runtime: 'plain' }));
    const reason = await named.ready().catch((error: unknown) => error);
    expect(reason).toMatchObject({ code: expect.stringMatching(/^engine_/) });
    await expect(failed.ready()).rejects.toMatchObject({ code: (reason as { code: string }).code });
    expect(failed.view()).toMatchObject({ state: 'FAILED', isolation: { runtime: 'plain' } });
    expect(await world.engine.list(world.owner)).toEqual([]);
    expect(await listContainers(connection, [`${label.kind}=runtime-check`])).toEqual([]);
  }, 120_000);

  test('[A16] is checked in a container that goes with a daemon that is killed meanwhile', async () => {
    // Called as if it were another one, so that there is something to check.
    const connection = await engineWith({
      runtimes: { krun: { path: findInPath('runc', process.env['PATH']) } },
    });
    const home = await daemonHome(connection);
    const first = await home.start({ SALLYPORT_CRASH_AT: 'runtime.started' });
    const spec = { name: 'victim', image: testEngine().image, runtime: 'strongest' };
    await expect(first.client.json('POST', '/v1/sandboxes', { body: { spec } })).rejects.toBeDefined();
    await first.ended;
    expect(first.child.signalCode).toBe('SIGKILL');
    await until(async () => (await listContainers(connection, [`${label.kind}=runtime-check`])).length === 0);
    const next = await home.start();
    await next.client.json('POST', '/v1/sandboxes/victim/start');
    const made = await next.client.json<SandboxView>('GET', '/v1/sandboxes/victim');
    expect(made).toMatchObject({ state: 'READY', isolation: { runtime: 'krun' } });
  }, 120_000);

  test('is one that has services where the spec asks for some, and says why', async () => {
    const opened = await openSandboxes();
    const { image } = testEngine();
    const { runtimes } = await opened.world.engine.facts();
    const required_services = [{ name: 'db', image, command: ['sh', '-c', 'exec sleep 1000'] }];
    const box = await opened.make({ spec: { runtime: 'strongest', required_services } });
    expect(box.view()).toMatchObject({
      isolation: { runtime: 'runc', level: 'container', network: 'services' },
      services: [{ name: 'db', state: 'READY' }],
    });
    const passedOver = { code: 'runtime_passed_over', message: expect.stringContaining('runsc (gvisor)') };
    expect(await notesOf(opened, box.id)).toMatchObject([
      ...(runtimes.includes('runsc') ? [passedOver] : []),
      { code: 'runtime_chosen', message: expect.stringContaining('runc (container)') },
    ]);
  });
});

describe('[R11] on the command line', () => {
  test('the default of the user’s own file is chosen, told and shown', async () => {
    const home = await newFolder();
    await mkdir(join(home, '.config/sallyport'), { recursive: true });
    await writeFile(join(home, '.config/sallyport/config.yaml'), 'runtime: strongest\n');
    const env = { HOME: home };
    const made = await sally(['create', '--image', inject('engine').image, '--name', 'own-default'], { env });
    const name = made.stdout.trim();
    removeAfterwards(name);
    expect(made.stderr).toMatch(/runtime \S+ \((gvisor|container)\) was chosen/);
    const [seen] = JSON.parse((await sally(['inspect', name])).stdout);
    const { runtime, level } = seen.isolation;
    expect(made.stderr).toContain(`runtime ${runtime} (${level}) was chosen`);
    const table = (await sally(['ls'])).stdout;
    expect(table).toMatch(/^NAME +STATE +IMAGE +ISOLATION +WORKSPACE +CREATED$/m);
    expect(table).toMatch(new RegExp(`^${name} +ready +\\S+ +${level} +-`, 'm'));
  });

  test('`ls` shows the level of a sandbox that names its runtime', async () => {
    const name = await makeBox(['--runtime', 'runc']);
    expect((await sally(['ls'])).stdout).toMatch(new RegExp(`^${name} +ready +\\S+ +container +-`, 'm'));
  });

  test('`explain` shows what would be chosen, and says when that cannot be known', async () => {
    const explain = async (env: Record<string, string> = {}) => {
      const { code, stdout } = await sally(['explain', '--runtime', 'strongest', '--json'], { env });
      expect(code).toBe(0);
      return JSON.parse(stdout) as { request: { HostConfig: { Runtime?: string } }; notes: string[] };
    };
    const { request, notes } = await explain();
    expect(notes).toEqual([expect.stringMatching(`^the runtime would be ${request.HostConfig.Runtime} \\(`)]);
    const unknown = await explain({ DOCKER_HOST: 'unix:///nowhere' });
    expect(unknown.notes).toEqual(['which runtime it would be is not known: no engine answers']);
    expect(unknown.request.HostConfig.Runtime).toBeUndefined();
  });
});
