import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { boxDiskHold, boxDiskUse } from '../../src/engines/docker/box-disk.ts';
import { createContainer } from '../../src/engines/docker/containers/create.ts';
import { getArchive } from '../../src/engines/docker/containers/get-archive.ts';
import { inspectContainer } from '../../src/engines/docker/containers/inspect.ts';
import { killContainer } from '../../src/engines/docker/containers/kill.ts';
import { listContainers } from '../../src/engines/docker/containers/list.ts';
import { putArchive } from '../../src/engines/docker/containers/put-archive.ts';
import { removeContainer } from '../../src/engines/docker/containers/remove.ts';
import { containerSize } from '../../src/engines/docker/containers/size.ts';
import { startContainer } from '../../src/engines/docker/containers/start.ts';
import { stopContainer } from '../../src/engines/docker/containers/stop.ts';
import { waitForExit } from '../../src/engines/docker/containers/wait.ts';
import { engineEvents } from '../../src/engines/docker/system/events.ts';
import { engineInfo } from '../../src/engines/docker/system/info.ts';
import { engineVersion } from '../../src/engines/docker/system/version.ts';
import { findVolume } from '../../src/engines/docker/volumes/inspect.ts';
import { listVolumes } from '../../src/engines/docker/volumes/list.ts';
import { removeVolume } from '../../src/engines/docker/volumes/remove.ts';
import { volumeUsage } from '../../src/engines/docker/volumes/usage.ts';
import { label } from '../../src/protocol/labels.ts';
import { makeContainer, makeVolume, runContainer, testEngine } from '../support/engine.ts';
import { tarStream, untar } from '../support/tar.ts';

const engine = testEngine();
const { connection } = engine;
const mebibyte = 2 ** 20;
const unique = (): string => `sallyport-test-${randomBytes(6).toString('hex')}`;

describe('the life of a container', () => {
  it('is created, started, seen, waited for and removed', async () => {
    const name = unique();
    const id = await makeContainer(engine, { name, Cmd: ['sh', '-c', 'exit 7'] });
    expect(await inspectContainer(connection, id)).toMatchObject({
      id,
      name,
      running: false,
      status: 'created',
    });
    await startContainer(connection, id);
    expect(await waitForExit(connection, id, { timeoutMs: 20_000 })).toBe(7);
    expect(await inspectContainer(connection, name)).toMatchObject({ status: 'exited', exitCode: 7 });
    const mine = await listContainers(connection, [`${label.test}=${engine.labels()[label.test]}`]);
    expect(mine.map((row) => row.id)).toContain(id);
    await removeContainer(connection, id);
    await expect(inspectContainer(connection, id)).rejects.toMatchObject({ code: 'engine_not_found' });
  });

  it('start and stop do not mind what is done already', async () => {
    const id = await runContainer(engine, 'exec sleep 600');
    await startContainer(connection, id);
    await stopContainer(connection, id, 0);
    await stopContainer(connection, id, 0);
    expect(await inspectContainer(connection, id)).toMatchObject({ running: false, exitCode: 137 });
    await expect(killContainer(connection, id, 'KILL')).rejects.toMatchObject({ code: 'engine_conflict' });
  });

  it('[N5] has a disk usage: of its root and its volume, by the engine and by its folders', async () => {
    const volume = await makeVolume(engine, unique());
    const id = await makeContainer(engine, {
      User: '0:0',
      Cmd: ['sh', '-c', 'head -c 5M /dev/zero > /root/file; head -c 3M /dev/zero > /data/file; sync'],
      HostConfig: { Mounts: [{ Type: 'volume', Source: volume, Target: '/data' }] },
    });
    expect(await boxDiskUse(connection, id, { of: 'bytes' })).toMatchObject({ isComplete: true });
    await startContainer(connection, id);
    await waitForExit(connection, id, { timeoutMs: 20_000 });
    expect(await containerSize(connection, id)).toBe(5 * mebibyte);
    expect((await volumeUsage(connection)).get(volume)).toBeGreaterThanOrEqual(3 * mebibyte);
    const { amount, isComplete } = await boxDiskUse(connection, id, { of: 'bytes' });
    expect(isComplete).toBe(true);
    expect(amount).toBeGreaterThanOrEqual(8 * mebibyte);
    expect(amount).toBeLessThan(8.2 * mebibyte);
    expect(await boxDiskHold(connection, id)).toMatchObject({ hasVolumes: true });
    await removeContainer(connection, id);
    expect(await boxDiskUse(connection, id, { of: 'bytes' })).toMatchObject({ amount: 0, isComplete: true });
  });

  it('an image that is not there is image_missing', async () => {
    const body = { Image: `${unique()}:none`, Labels: engine.labels() };
    await expect(createContainer(connection, { body })).rejects.toMatchObject({ code: 'image_missing' });
  });

  it('a name that is taken is engine_conflict', async () => {
    const name = unique();
    await makeContainer(engine, { name });
    await expect(makeContainer(engine, { name })).rejects.toMatchObject({ code: 'engine_conflict' });
  });

  it('removing is done once, however often and by however many it is asked for', async () => {
    const id = await runContainer(engine, 'exec sleep 600');
    await Promise.all(Array.from({ length: 6 }, () => removeContainer(connection, id)));
    await removeContainer(connection, id);
    await removeContainer(connection, unique());
  });

  it('a wait is ended by its deadline and by its signal', async () => {
    const id = await runContainer(engine, 'exec sleep 600');
    await expect(waitForExit(connection, id, { timeoutMs: 200 })).rejects.toMatchObject({
      code: 'engine_timeout',
    });
    const controller = new AbortController();
    const waiting = waitForExit(connection, id, { timeoutMs: 60_000, signal: controller.signal });
    controller.abort();
    await expect(waiting).rejects.toMatchObject({ code: 'cancelled' });
  });

  it('a name with a path in it reaches nothing but an object of that name', async () => {
    for (const name of ['../json', 'x/../../info', 'x?force=1', '', '..']) {
      await expect(inspectContainer(connection, name)).rejects.toMatchObject({ kind: expect.any(String) });
    }
  });
});

describe('archives', () => {
  it('what is put into a container comes out again', async () => {
    const id = await makeContainer(engine);
    const content = randomBytes(3 * 2 ** 20);
    await putArchive(connection, id, '/tmp', await tarStream({ 'a.bin': content, 'sub/b.txt': 'hello' }));
    const files = await untar(await getArchive(connection, id, '/tmp/.'));
    expect(files.get('./a.bin')?.equals(content)).toBe(true);
    expect(files.get('./sub/b.txt')?.toString()).toBe('hello');
  });

  it('a path that is not there is engine_not_found, in both directions', async () => {
    const id = await makeContainer(engine);
    const missing = { code: 'engine_not_found' };
    await expect(getArchive(connection, id, '/no/such')).rejects.toMatchObject(missing);
    await expect(putArchive(connection, id, '/no/such', await tarStream({ a: 'x' }))).rejects.toMatchObject(
      missing,
    );
  });

  it('a refusal is heard although the upload is far from its end', async () => {
    let produced = 0;
    const upload = new Readable({
      read() {
        produced += 65_536;
        setImmediate(() => this.push(Buffer.alloc(65_536)));
      },
    });
    await expect(putArchive(connection, unique(), '/tmp', upload)).rejects.toMatchObject({
      code: 'engine_not_found',
    });
    expect(upload.destroyed).toBe(true);
    expect(produced).toBeLessThan(64 * 2 ** 20);
  });

  it('an archive that is none is an error of the engine, not a hang', async () => {
    const id = await makeContainer(engine);
    const garbage = Readable.from([randomBytes(4096)]);
    await expect(putArchive(connection, id, '/tmp', garbage)).rejects.toMatchObject({
      code: 'engine_failed',
    });
  });

  it('leaving in the middle of an archive frees the connection', async () => {
    const id = await makeContainer(engine);
    await putArchive(connection, id, '/tmp', await tarStream({ big: Buffer.alloc(20 * 2 ** 20) }));
    const controller = new AbortController();
    const stream = await getArchive(connection, id, '/tmp', { signal: controller.signal });
    const reading = (async () => {
      for await (const _chunk of stream) controller.abort();
    })();
    await expect(reading).rejects.toMatchObject({ code: 'cancelled' });
    expect(await inspectContainer(connection, id)).toMatchObject({ id });
  });
});

describe('volumes', () => {
  it('are found by name and label, and removed once', async () => {
    const name = await makeVolume(engine, unique());
    expect(await findVolume(connection, name)).toMatchObject({ name, labels: engine.labels() });
    expect(await findVolume(connection, unique())).toBeUndefined();
    const listed = await listVolumes(connection, [`${label.test}=${engine.labels()[label.test]}`]);
    expect(listed.map((volume) => volume.name)).toContain(name);
    await removeVolume(connection, name);
    await removeVolume(connection, name);
  });

  it('in use are engine_conflict', async () => {
    const name = await makeVolume(engine, unique());
    const id = await makeContainer(engine, {
      HostConfig: { Mounts: [{ Type: 'volume', Source: name, Target: '/v' }] },
    });
    await expect(removeVolume(connection, name)).rejects.toMatchObject({ code: 'engine_conflict' });
    await removeContainer(connection, id);
  });
});

describe('the engine itself', () => {
  it('tells its version and what it can do', async () => {
    const version = await engineVersion(connection);
    expect(version).toMatchObject({ os: 'linux', architecture: expect.stringMatching(/^(amd64|arm64)$/) });
    expect(version.components).toHaveProperty('runc');
    const info = await engineInfo(connection);
    expect(info.runtimes).toContain(info.defaultRuntime);
    expect(info.memoryBytes).toBeGreaterThan(2 ** 28);
  });

  it('tells what happens to objects with a label, as it happens, until nobody listens', async () => {
    const mark = unique();
    const controller = new AbortController();
    const labelled: [string] = [`mark=${mark}`];
    const actions: string[] = [];
    const sinceSeconds = Math.floor(Date.now() / 1000);
    const listening = (async () => {
      for await (const event of engineEvents(connection, labelled, {
        signal: controller.signal,
        sinceSeconds,
      })) {
        actions.push(event.action);
        if (event.action === 'destroy') return;
      }
    })();
    const id = await runContainer(engine, 'exit 0', { labels: { mark } });
    await waitForExit(connection, id, { timeoutMs: 20_000 });
    await removeContainer(connection, id);
    await listening;
    expect(actions).toEqual(['create', 'start', 'die', 'destroy']);
    const next = engineEvents(connection, labelled, { signal: controller.signal }).next();
    controller.abort();
    await expect(next).rejects.toMatchObject({ code: 'cancelled' });
  });
});
