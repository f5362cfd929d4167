/** A sandbox that writes too much, on a disk that is nobody else's: an engine of this file's own on a loop device. */

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'vitest';
import { createContainer } from '../../src/engines/docker/containers/create.ts';
import { removeContainer } from '../../src/engines/docker/containers/remove.ts';
import { dockerServiceEngine } from '../../src/engines/docker/service-engine.ts';
import { formatSize } from '../../src/lib/sizes.ts';
import { label } from '../../src/protocol/labels.ts';
import type { HealthView, SandboxView } from '../../src/protocol/views.ts';
import type { DaemonClient } from '../../src/sdk/client.ts';
import { followEvents, type SandboxEvent } from '../../src/sdk/events.ts';
import type { CreateOptions, Sandbox } from '../../src/sdk/sandbox.ts';
import { type DaemonHome, daemonHome } from '../support/daemon-home.ts';
import { makeSandbox } from '../support/daemon-world.ts';
import { testImage } from '../support/engine-under-test.ts';
import { canMakeDisk, folderOnLoopDisk } from '../support/loop-disk.ts';
import { newProject } from '../support/projects.ts';
import { commandExists, requirement } from '../support/requires.ts';
import { engineExec } from '../support/runtime-box.ts';
import { asRoot, fullSizes, onGvisor, when } from '../support/selection.ts';
import { smallDisk } from '../support/small-disk.ts';
import { until } from '../support/until.ts';

const mib = 2 ** 20;
/** The user of a sandbox without a live workspace. */
const boxUid = 1000;

const sequenceOf = async (client: DaemonClient): Promise<number> =>
  (await client.json<HealthView>('GET', '/v1/health')).sequence;

async function untilEvent(
  client: DaemonClient,
  since: number,
  isIt: (event: SandboxEvent) => boolean,
): Promise<SandboxEvent> {
  for await (const event of followEvents(client, { since })) if (isIt(event)) return event;
  throw new Error('the events ended');
}

const untilStopped = (client: DaemonClient, since: number, id: string): Promise<SandboxEvent> =>
  untilEvent(
    client,
    since,
    (event) => event.type === 'sandbox.state' && event.to === 'STOPPED' && event.sandboxId === id,
  );

const exceeded = { code: 'disk_limit_exceeded' };
const bothWays = (name: string) =>
  expect.stringMatching(new RegExp(`sally start --clean-up ${name}.*sally start --disk \\w+ ${name}`));

const write = (mebibytes: number, name = 'big'): string =>
  `head -c ${mebibytes}M /dev/zero > /var/tmp/${name} && sync /var/tmp/${name}`;
const forever = 'exec tail -f /dev/null';
const sizeOf = async (box: Sandbox, path: string): Promise<number> => (await box.files.stat(path)).size;
const containerBytes = async ({ engine }: DaemonHome, { info }: Sandbox): Promise<number> =>
  (await engine.diskUse(info.containerId ?? '', { of: 'bytes' })).amount;
const rowOf = async (box: Sandbox, row = 'disk') =>
  (await box.verify()).checks.find(({ name }) => name === row);
async function logsUntil(box: Sandbox, service: string, end: RegExp): Promise<string> {
  let text = '';
  for await (const chunk of box.serviceLogs(service, { follow: true })) {
    text += chunk.toString();
    if (end.test(text)) return text;
  }
  throw new Error(`the service ended: ${text}`);
}
const runningArgv = async (box: Sandbox) =>
  (await box.execs()).filter(({ state }) => state === 'running').map(({ argv }) => argv);

when(asRoot, canMakeDisk('ext4')).describe('[N5] a limit of disk that is watched', () => {
  const disk = smallDisk('ext4', 700);
  const open = async (env: Readonly<Record<string, string>> = {}) => {
    const home = await daemonHome(disk.connection());
    return { home, daemon: await home.start(env) };
  };

  when(asRoot).it('stops a sandbox that is over it with its commands, and removes nothing', async () => {
    const outside = folderOnLoopDisk(250, boxUid);
    const live = folderOnLoopDisk(150, boxUid);
    const { daemon } = await open();
    const { client } = daemon;
    const project = await newProject({ 'file.txt': 'as it was\n' });
    const command = ['sh', '-c', `echo begun; ${forever}`];
    const box = await makeSandbox(daemon, {
      name: 'writer',
      limits: { disk: '128m' },
      workspace: { path: project, mode: 'copy' },
      mounts: [{ source: outside, target: '/outside', writable: true }],
      command,
    });
    const neighbour = await makeSandbox(daemon, {
      name: 'neighbour',
      limits: { disk: '64m' },
      workspace: { path: live, mode: 'live' },
    });

    // Below the limit nothing happens, and what is in force is said.
    await box.sh(`${write(60, 'small')}; echo changed > /workspace/file.txt`, { check: true });
    expect(await rowOf(box)).toMatchObject({
      expected: 'at most 128 MiB',
      found: expect.stringMatching(
        /^watched: 6\d MiB of 128 MiB, the free space is sampled every second; not counted: \/outside$/,
      ),
      status: 'ok',
    });
    expect(await box.refresh()).toMatchObject({
      state: 'READY',
      limits: { diskBytes: 128 * mib },
      disk: { usedBytes: expect.any(Number), measuredAt: expect.any(String) },
    });
    // What is on the host is outside of it.
    await box.sh('head -c 100M /dev/zero > /outside/big && sync /outside/big', { check: true });
    await neighbour.sh('head -c 80M /dev/zero > /workspace/big && sync /workspace/big', { check: true });
    expect((await rowOf(neighbour))?.found).toMatch(
      /^watched: \S+ KiB of 64 MiB, .*; not counted: \/workspace$/,
    );

    const since = await sequenceOf(client);
    const background = await box.spawn(['tail', '-f', '/dev/null'], { background: true });
    await expect(box.sh(`${write(120)}; ${forever}`)).rejects.toMatchObject({
      ...exceeded,
      message: expect.stringMatching(/wrote \d+ MiB, and the disk limit is 128 MiB/),
      advice: bothWays('writer'),
    });
    await expect(background.wait()).rejects.toMatchObject(exceeded);
    expect(await untilEvent(client, since, ({ type }) => type === 'disk.exceeded')).toMatchObject({
      sandboxId: box.id,
      rule: 'limit',
      of: 'bytes',
      limit: 128 * mib,
      used: expect.any(Number),
    });
    const isEnd = (event: SandboxEvent) => event.type === 'exec.ended' && event.execId === background.id;
    expect(await untilEvent(client, since, isEnd)).toMatchObject({
      error: 'disk_limit_exceeded',
      timedOut: false,
      oomKilled: false,
    });
    await untilStopped(client, since, box.id);
    expect(await box.refresh()).toMatchObject({
      state: 'STOPPED',
      reason: expect.stringMatching(/the disk limit is 128 MiB/),
      disk: { exceeded: 'limit' },
    });
    expect((await neighbour.sh('echo works')).stdout).toBe('works\n');

    // It does not go on by itself.
    for (const attempt of [() => box.start(), () => box.ensureRunning(), () => box.exec(['true'])])
      await expect(attempt()).rejects.toMatchObject({ ...exceeded, advice: bothWays('writer') });

    // Its files are within reach, and its commands are not.
    expect(await sizeOf(box, '/var/tmp/small')).toBe(60 * mib);
    expect(await sizeOf(box, '/var/tmp/big')).toBeGreaterThan(64 * mib);
    expect((await box.changes()).changes).toMatchObject([{ path: 'file.txt', change: 'changed' }]);
    expect((await box.apply()).applied).toBe(true);
    expect(await readFile(join(project, 'file.txt'), 'utf8')).toBe('changed\n');
    expect(await box.refresh()).toMatchObject({ state: 'READY', disk: { cleanUp: true } });
    for (const attempt of [() => box.exec(['true']), () => box.ensureRunning(), () => box.start()])
      await expect(attempt()).rejects.toMatchObject(exceeded);
    expect(await runningArgv(box)).toEqual([]);

    // With more it goes on where it was, with its command.
    await box.start({ disk: '300m' });
    expect(await box.refresh()).toMatchObject({ state: 'READY', limits: { diskBytes: 300 * mib } });
    expect(box.info.disk.cleanUp).toBeUndefined();
    expect((await box.sh('wc -c < /var/tmp/small')).stdout.trim()).toBe(String(60 * mib));
    expect(await runningArgv(box)).toEqual([command]);
    expect((await rowOf(box))?.found).toMatch(/of 300 MiB/);

    // Over that as well: it is cleaned up, and goes on with the same limit.
    const again = await sequenceOf(client);
    await expect(box.sh(`${write(250, 'more')}; ${forever}`)).rejects.toMatchObject(exceeded);
    await untilStopped(client, again, box.id);
    await box.start({ cleanUp: true });
    await expect(box.exec(['true'])).rejects.toMatchObject(exceeded);
    await box.exec(['rm', '/var/tmp/big', '/var/tmp/more'], { duringCleanUp: true, check: true });
    await box.start();
    expect((await box.sh('ls /var/tmp')).stdout).toBe('small\n');
    expect(await box.refresh()).toMatchObject({ limits: { diskBytes: 300 * mib } });
    expect(await runningArgv(box)).toEqual([command]);
  });

  when(asRoot).it('stops the sandbox that grows when the disk itself runs low, and no other', async () => {
    const { daemon } = await open();
    const { client } = daemon;
    const [still, greedy] = await Promise.all([
      makeSandbox(daemon, { name: 'still' }),
      makeSandbox(daemon, { name: 'greedy' }),
    ]);
    await still.sh(write(40), { check: true });
    const since = await sequenceOf(client);
    // To less than the reserve, and no further: on a full disk the engine starts nothing. Its own limit is far away. In one step, so that no
    // sample is taken on the way: the sizes at twice the reserve are a test of src/sandboxes/disk-watch.test.ts.
    const freeMiB = '$(df --output=avail -B1M /var/tmp | tail -n 1)';
    const filling = `fallocate -l $((${freeMiB} - 25))M /var/tmp/big; ${forever}`;
    await expect(greedy.sh(filling)).rejects.toMatchObject({
      ...exceeded,
      message: expect.stringMatching(/the engine's disk has .* free, less than the reserve of/),
    });
    expect(await untilEvent(client, since, ({ type }) => type === 'disk.exceeded')).toMatchObject({
      sandboxId: greedy.id,
      rule: 'reserve',
      of: 'bytes',
    });
    await untilStopped(client, since, greedy.id);
    expect((await still.sh('echo works > /var/tmp/word; cat /var/tmp/word')).stdout).toBe('works\n');
    expect(await still.refresh()).toMatchObject({ state: 'READY' });

    // Not while the disk is as low. Then there is room, and it goes on.
    await expect(greedy.start()).rejects.toMatchObject({ ...exceeded, advice: bothWays('greedy') });
    await greedy.files.remove('/var/tmp/big');
    expect(await disk.freeBytes()).toBeGreaterThan(200 * mib);
    await greedy.start();
    expect((await greedy.sh('echo again')).stdout).toBe('again\n');
  });

  when(asRoot).it('counts files that are deleted and still open', async () => {
    const outside = folderOnLoopDisk(250, boxUid);
    const { daemon, home } = await open();
    const { client } = daemon;
    const box = await makeSandbox(daemon, {
      name: 'hider',
      limits: { disk: '128m' },
      mounts: [{ source: outside, target: '/outside', writable: true }],
    });
    const hidden = (path: string, mebibytes: number): string =>
      `exec 3<>${path}; rm ${path}; head -c ${mebibytes}M /dev/zero >&3; sync /proc/self/fd/3`;
    // On the host it does not count, and in memory neither.
    await box.spawn(['bash', '-c', `${hidden('/outside/f', 100)}; ${forever}`], { background: true });
    await box.spawn(['bash', '-c', `${hidden('/var/tmp/f', 40)}; ${forever}`], { background: true });
    await until(async () => (await containerBytes(home, box)) >= 40 * mib);
    expect((await rowOf(box))?.found).toMatch(/^watched: 4\d MiB of 128 MiB/);
    const since = await sequenceOf(client);
    await expect(box.exec(['bash', '-c', `${hidden('/var/tmp/f', 120)}; ${forever}`])).rejects.toMatchObject(
      exceeded,
    );
    await untilStopped(client, since, box.id);
    // They are gone with the processes.
    await box.start();
    expect((await rowOf(box))?.found).toMatch(/^watched: \S+ KiB of 128 MiB/);
  });

  when(asRoot).it('is kept by the next daemon, also when this one dies before the stop', async () => {
    const { home, daemon } = await open({ SALLYPORT_CRASH_AT: 'disk.noted' });
    const signs = await newProject({ 'read.me': '' });
    const options: CreateOptions = {
      limits: { disk: '100m' },
      mounts: [{ source: signs, target: '/signs', writable: false }],
    };
    const noted = await makeSandbox(daemon, { ...options, name: 'noted' });
    const unseen = await makeSandbox(daemon, { ...options, name: 'unseen' });
    const command = await noted.spawn(['sh', '-c', `${write(130)}; ${forever}`], { background: true });
    await daemon.ended;
    expect(daemon.child.signalCode).toBe('SIGKILL');

    const second = await home.start();
    expect(await second.client.json<SandboxView>('GET', '/v1/sandboxes/noted')).toMatchObject({
      state: 'STOPPED',
      disk: { exceeded: 'limit' },
    });
    expect(await second.client.json('GET', `/v1/sandboxes/noted/execs/${command.id}/wait`)).toMatchObject({
      exec: { error: exceeded },
    });

    // Written while there is no daemon at all.
    await second.client.json('POST', '/v1/sandboxes/unseen/execs', {
      body: { argv: ['sh', '-c', `until [ -e /signs/go ]; do :; done; ${write(130)}`], background: true },
    });
    second.child.kill('SIGKILL');
    await second.ended;
    await writeFile(join(signs, 'go'), '');
    await until(async () => (await containerBytes(home, unseen)) > 125 * mib);
    const third = await home.start();
    await untilStopped(third.client, 0, unseen.id);
    expect(await third.client.json<SandboxView>('GET', '/v1/sandboxes/unseen')).toMatchObject({
      state: 'STOPPED',
      disk: { exceeded: 'limit' },
    });
  });

  when(asRoot).it('covers services, whose own limit changes with the spec', async () => {
    const { home, daemon } = await open();
    const { client } = daemon;
    const { image = '' } = testImage();
    const limits = { disk: '64m' };
    const store = { name: 'store', image, limits, command: ['sh', '-c', `${write(20)}; ${forever}`] };
    const cache = { name: 'cache', image, limits, command: ['sh', '-c', forever] };
    const since = await sequenceOf(client);
    const box = await makeSandbox(daemon, {
      name: 'served',
      requiredServices: [store],
      optionalServices: [cache],
    });
    expect(await rowOf(box, 'disk of store')).toMatchObject({
      expected: 'at most 64 MiB',
      found: expect.stringMatching(/^watched: \S+ \w+ of 64 MiB/),
      status: 'ok',
    });
    const isUp = (event: SandboxEvent) => event.type === 'service.ready' && event.service === 'cache';
    await untilEvent(client, since, isUp);
    await writeInService(home, 'cache', 120);
    expect(await untilEvent(client, since, ({ type }) => type === 'disk.exceeded')).toMatchObject({
      sandboxId: box.id,
      service: 'cache',
      limit: 64 * mib,
    });
    await untilStopped(client, since, box.id);
    await expect(box.start()).rejects.toMatchObject({
      ...exceeded,
      details: expect.objectContaining({ service: 'cache' }),
      advice: expect.stringContaining('limits.disk of the service cache'),
    });
    // A limit of its own is not the sandbox's. It changes with the spec.
    await expect(box.start({ disk: '500m' })).rejects.toMatchObject(exceeded);
    const noted = (event: SandboxEvent) =>
      event.type === 'sandbox.note' && event.code === 'disk_limit_services';
    expect(await untilEvent(client, since, noted)).toMatchObject({ sandboxId: box.id });
    const raised = { ...cache, limits: { disk: '300m' } };
    const spec = { name: 'served', image, required_services: [store], optional_services: [raised] };
    await client.json('POST', '/v1/sandboxes', { body: { spec, reuse: true }, query: { wait: false } });
    await box.start();
    expect((await box.sh('echo works')).stdout).toBe('works\n');
    expect((await rowOf(box, 'disk of cache'))?.found).toMatch(/^watched: \d+ MiB of 300 MiB/);
  });

  when(asRoot).it('covers volumes of images, and changes with the spec', async () => {
    const { daemon } = await open();
    const { client } = daemon;
    // A volume is no part of a container's root.
    const image = await imageWithVolume();
    const since = await sequenceOf(client);
    const box = await makeSandbox(daemon, { name: 'keeper', image, limits: { disk: '64m' } });
    await expect(box.sh(`${write(120)}; ${forever}`)).rejects.toMatchObject(exceeded);
    await untilStopped(client, since, box.id);
    // R4: what is watched is changed as it is.
    const spec = { name: 'keeper', image, limits: { disk: '300m' } };
    await client.json('POST', '/v1/sandboxes', { body: { spec, reuse: true }, query: { wait: false } });
    expect((await box.refresh()).limits.diskBytes).toBe(300 * mib);
    await box.start();
    // It was stopped while it wrote, or a moment later.
    expect(await sizeOf(box, '/var/tmp/big')).toBeGreaterThan(60 * mib);
    await box.sh(write(80, 'more'), { check: true });
    expect((await rowOf(box))?.found).toMatch(/^watched: [12]\d\d MiB of 300 MiB/);
  });

  when(asRoot).it('covers what is copied in', async () => {
    const signs = folderOnLoopDisk(150, boxUid);
    await writeFile(join(signs, 'large'), Buffer.alloc(70 * mib, 1));
    const { daemon } = await open();
    const copies = [{ source: signs, target: '/copied' }];
    const tooMuch = makeSandbox(daemon, { name: 'copied', copies, limits: { disk: '64m' } });
    await expect(tooMuch).rejects.toMatchObject(exceeded);
    const fits = await makeSandbox(daemon, { name: 'fits', copies, limits: { disk: '128m' } });
    expect(await sizeOf(fits, '/copied/large')).toBe(70 * mib);
  });

  when(fullSizes).it('stops the one that makes files when the disk has hardly any left', async () => {
    const { daemon } = await open();
    const { client } = daemon;
    const still = await makeSandbox(daemon, { name: 'still' });
    const greedy = await makeSandbox(daemon, { name: 'greedy' });
    const since = await sequenceOf(client);
    // More than the disk has.
    const making = `cd /var/tmp; seq 200000 | xargs touch; ${forever}`;
    await expect(greedy.sh(making)).rejects.toMatchObject(exceeded);
    expect(await untilEvent(client, since, ({ type }) => type === 'disk.exceeded')).toMatchObject({
      sandboxId: greedy.id,
      rule: 'reserve',
      of: 'files',
    });
    expect((await still.sh('echo works')).stdout).toBe('works\n');
  });

  when(fullSizes, onGvisor, requirement('gVisor', commandExists('runsc'))).it('holds on gVisor', async () => {
    const { daemon } = await open();
    const box = await makeSandbox(daemon, { name: 'guest', limits: { disk: '128m' }, runtime: 'runsc' });
    await box.sh(write(60, 'small'), { check: true });
    expect((await rowOf(box))?.found).toMatch(/^watched: 6\d MiB of 128 MiB/);
    await expect(box.sh(`${write(300)}; ${forever}`)).rejects.toMatchObject(exceeded);
  });

  /** At a folder that everybody may write to. */
  async function imageWithVolume(): Promise<string> {
    const { image = '' } = testImage();
    const connection = disk.connection();
    const id = await createContainer(connection, { body: { Image: image } });
    const query = { container: id, repo: 'with-volume', tag: '1', changes: 'VOLUME /var/tmp' };
    await connection.json({ method: 'POST', path: '/commit', query });
    await removeContainer(connection, id);
    return 'with-volume:1';
  }

  /** When the sandbox is ready: one that exceeds its limit before fails to be made. */
  async function writeInService({ owner }: DaemonHome, service: string, mebibytes: number): Promise<void> {
    const connection = disk.connection();
    const all = await dockerServiceEngine(connection).list(owner);
    const found = all.find(({ labels }) => labels[label.service] === service);
    const output = await engineExec(connection, found?.id ?? '', ['sh', '-c', write(mebibytes)]);
    output.resume();
  }
});

when(asRoot, canMakeDisk('btrfs')).describe('[N5] a limit of disk that the kernel holds', () => {
  const disk = smallDisk('btrfs', 1200);
  const isExact = { found: 'exact: the kernel refuses more than 100 MiB', status: 'ok' };

  when(asRoot).it('refuses the write itself, and nothing is stopped', async () => {
    const home = await daemonHome(disk.connection());
    const daemon = await home.start();
    const box = await makeSandbox(daemon, { name: 'held', limits: { disk: '100m' } });
    expect(await rowOf(box)).toMatchObject(isExact);
    // Below it, and beyond it, whatever the image takes.
    await box.sh(write(60, 'small'), { check: true });
    const refused = await box.sh(`(${write(150)}) 2>&1; du -sk /var/tmp | cut -f1`);
    expect(refused.stdout).toMatch(/Disk quota exceeded|No space left on device/);
    expect(Number(refused.stdout.trim().split('\n').at(-1)) * 1024).toBeLessThanOrEqual(101 * mib);
    expect(await box.refresh()).toMatchObject({ state: 'READY' });
    await box.sh('rm /var/tmp/big && echo room > /var/tmp/word', { check: true });

    // It is as it was made: for a start and for another spec.
    await box.stop();
    const refusal = { code: 'engine_unsupported', details: { sandbox: 'held', field: 'limits.disk' } };
    await expect(box.start({ disk: '300m' })).rejects.toMatchObject(refusal);
    const other = { name: 'held', reuse: true, limits: { disk: '300m' } };
    await expect(makeSandbox(daemon, other)).rejects.toMatchObject({
      code: 'sandbox_exists',
      message: expect.stringContaining('limits.disk'),
    });
    await box.start();
    expect((await box.sh('cat /var/tmp/word')).stdout).toBe('room\n');
    expect(formatSize(box.info.limits.diskBytes)).toBe('100 MiB');
  });

  when(asRoot).it('refuses the write of a service with a limit of its own, which runs on', async () => {
    const daemon = await (await daemonHome(disk.connection())).start();
    const { image = '' } = testImage();
    const script = `${write(60, 'small')} && echo fits; ${write(150)}; du -sk /var/tmp; echo done; ${forever}`;
    const limits = { disk: '100m' };
    const service = { name: 'store', image, limits, command: ['sh', '-c', script] };
    const box = await makeSandbox(daemon, { name: 'served', requiredServices: [service] });
    expect(await rowOf(box, 'disk of store')).toMatchObject(isExact);
    const said = await logsUntil(box, 'store', /^done$/m);
    expect(said).toMatch(/^fits$/m);
    expect(said).toMatch(/Disk quota exceeded|No space left on device/);
    expect(Number(/^(\d+)\s+\/var\/tmp$/m.exec(said)?.[1]) * 1024).toBeLessThanOrEqual(101 * mib);
    expect(await box.refresh()).toMatchObject({
      state: 'READY',
      services: [{ name: 'store', state: 'READY' }],
    });
  });
});
