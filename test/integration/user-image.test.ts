/** Images for the sandbox's user, on real engines: made of any image, once, and what a box then sees. */

import { randomBytes, randomInt } from 'node:crypto';
import { Readable } from 'node:stream';
import { packTar } from 'modern-tar';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { dockerBoxEngine } from '../../src/engines/docker/box-engine.ts';
import { listContainers } from '../../src/engines/docker/containers/list.ts';
import { dockerImageEngine } from '../../src/engines/docker/image-engine.ts';
import { importImage } from '../../src/engines/docker/images/import.ts';
import { listImages } from '../../src/engines/docker/images/list.ts';
import { removeImage } from '../../src/engines/docker/images/remove.ts';
import { tagImage } from '../../src/engines/docker/images/tag.ts';
import { isStale } from '../../src/engines/docker/sweep-stale.ts';
import type { EngineConnection } from '../../src/engines/docker/wire/connection.ts';
import { EngineBoxImages } from '../../src/images/box-images.ts';
import { userImageKey } from '../../src/images/user-image.ts';
import { type ProgressEvent, silent } from '../../src/lib/progress.ts';
import { hardenedBox } from '../../src/policy/hardening.ts';
import { readPorterBinary } from '../../src/porter/binary.ts';
import type { Porter } from '../../src/porter/porter.ts';
import { label, ownedLabels } from '../../src/protocol/labels.ts';
import type { BoxHome, ImageEngine, ProvidedImage } from '../../src/sandboxes/ports.ts';
import { dockerBoxImages } from '../../src/setup/images.ts';
import { testEngine } from '../support/engine.ts';
import { copyImage, type PodmanService, startPodman } from '../support/podman.ts';
import { greet, nativeArchitecture, runIn } from '../support/porter-child.ts';
import { commandExists, requirement } from '../support/requires.ts';
import { asRoot, when } from '../support/selection.ts';
import { push, startRegistry } from './images-registry.ts';

const { image: testImage, labels } = testEngine();
const unique = (): string => `sallyport-test-${randomBytes(6).toString('hex')}`;

/** A user that no other test has, so that no other test's image is met. */
function newHome(more: Partial<BoxHome> = {}): BoxHome {
  const id = randomInt(20_000, 60_000);
  return { uid: id, gid: id + 1, home: '/home/sally', workdir: '/workspace', ...more };
}

type Entry = Parameters<typeof packTar>[0][number];

const file = (name: string, text: string | Buffer, mode = 0o644): Entry => {
  const body = Buffer.from(text);
  return { header: { name, type: 'file', size: body.length, mode, uid: 0, gid: 0 }, body };
};
const folder = (name: string, mode = 0o755): Entry => ({
  header: { name: `${name}/`, type: 'directory', size: 0, mode, uid: 0, gid: 0 },
});
const link = (name: string, linkname: string): Entry => ({
  header: { name, type: 'symlink', linkname, size: 0, mode: 0o777, uid: 0, gid: 0 },
});

/** An image of its own for this test; what is derived of it carries the run's label as well. */
async function imageOf(connection: EngineConnection, entries: readonly Entry[]): Promise<ProvidedImage> {
  const rootfs = Readable.from([Buffer.from(await packTar([...entries]))], { objectMode: false });
  const changes = Object.entries(labels()).map(([name, value]) => `LABEL ${name}=${value}`);
  const id = await importImage(connection, rootfs, { changes });
  const repository = unique();
  await tagImage(connection, id, { repository, tag: 'a' });
  onTestFinished(() => removeImage(connection, `${repository}:a`));
  const provided = await dockerBoxImages(connection).provide(
    { image: `${repository}:a` },
    { progress: silent },
  );
  return provided;
}

/** As few files as a program needs: one static program. */
async function scratch(connection: EngineConnection, more: readonly Entry[] = []): Promise<ProvidedImage> {
  const { bytes } = await readPorterBinary(nativeArchitecture);
  return await imageOf(connection, [file('program', bytes, 0o755), ...more]);
}

async function userImage(connection: EngineConnection, image: ProvidedImage, home: BoxHome): Promise<string> {
  const reference = await dockerBoxImages(connection).forUser(image, home);
  onTestFinished(() => removeImage(connection, reference));
  return reference;
}

async function boxOf(
  connection: EngineConnection,
  image: string,
  { uid, gid }: BoxHome,
  readOnlyRoot = false,
): Promise<Porter> {
  const engine = dockerBoxEngine(connection, readPorterBinary);
  const box = hardenedBox({
    name: unique(),
    image,
    porterVolume: await engine.providePorter(image),
    endsWithHost: false,
    labels: labels(ownedLabels('sandbox')),
  });
  const id = await engine.create({ ...box, user: { uid, gid }, readOnlyRoot });
  onTestFinished(() => engine.remove(id));
  const door = await engine.attach(id);
  onTestFinished(() => {
    door.destroy();
  });
  await engine.start(id);
  return await greet(door, 1);
}

const provideTestImage = (connection: EngineConnection): Promise<ProvidedImage> =>
  dockerBoxImages(connection).provide({ image: testImage }, { progress: silent });

/** The engine, with a list of what was asked of it. */
function recorded(connection: EngineConnection): { readonly engine: ImageEngine; readonly calls: string[] } {
  const calls: string[] = [];
  const engine = new Proxy(dockerImageEngine(connection), {
    get: (target, name, receiver) => {
      calls.push(String(name));
      return Reflect.get(target, name, receiver);
    },
  });
  return { engine, calls };
}

function userImagesOn(name: 'docker' | 'podman', get: () => EngineConnection): void {
  const whoAmI = 'whoami; id -gn; eval echo "~$(whoami)"; stat -c "%U:%G %a" ~sally /workspace; echo ~sally';

  it('[A11][G6] give the user a name, a group, a home and a working directory of its own', async () => {
    const home = newHome();
    const reference = await userImage(get(), await provideTestImage(get()), home);
    expect(reference).toMatch(/^sallyport-user:[0-9a-f]{16}$/);
    const porter = await boxOf(get(), reference, home);
    const script = `${whoAmI}; echo hi > /home/sally/file && cat /home/sally/file; id root; stat -c %U:%a /etc/passwd`;
    const { stdout, stderr } = await runIn(porter, ['bash', '-c', script]);
    expect(stderr).toBe('');
    expect(stdout.trim().split('\n')).toEqual([
      'sally',
      'sally',
      '/home/sally',
      'sally:sally 755',
      'sally:sally 755',
      '/home/sally',
      'hi',
      'uid=0(root) gid=0(root) groups=0(root)',
      'root:644',
    ]);
  });

  it('[C2] do so also where the root is read-only', async () => {
    const home = newHome();
    const reference = await userImage(get(), await provideTestImage(get()), home);
    const porter = await boxOf(get(), reference, home, true);
    const { stdout } = await runIn(porter, ['bash', '-c', whoAmI]);
    expect(stdout.split('\n').slice(0, 3)).toEqual(['sally', 'sally', '/home/sally']);
    const { stderr } = await runIn(porter, ['sh', '-c', ': > /home/sally/file']);
    expect(stderr).toContain('Read-only file system');
  });

  it('[G6] take the place of a user of the image that has the same number', async () => {
    // A path of its own makes it an image of its own: other tests may have a www-data too.
    const home = newHome({ uid: 33, gid: 33, workdir: `/${unique()}` });
    const reference = await userImage(get(), await provideTestImage(get()), home);
    const porter = await boxOf(get(), reference, home);
    const { stdout } = await runIn(porter, ['sh', '-c', 'whoami; id -gn; grep -c www-data /etc/passwd']);
    expect(stdout).toBe('sally\nsally\n0\n');
  });

  it('are made of an image that has one program and nothing else', async () => {
    const home = newHome({ workdir: '/work/here' });
    const reference = await userImage(get(), await scratch(get()), home);
    const { files } = await boxOf(get(), reference, home);
    const { uid, gid } = home;
    expect((await files.readAll('/etc/passwd', 1000)).toString()).toBe(
      `sally:x:${uid}:${gid}:Sallyport:/home/sally:/sbin/nologin\n`,
    );
    expect((await files.readAll('/etc/group', 1000)).toString()).toBe(`sally:x:${gid}:\n`);
    for (const path of ['/home/sally', '/work/here']) {
      expect(await files.stat(path)).toMatchObject({ uid, gid, mode: 0o755 });
    }
    for (const path of ['/home', '/work', '/etc']) {
      expect(await files.stat(path)).toMatchObject({ uid: 0, gid: 0, mode: 0o755 });
    }
  });

  it('replace what is no plain file, and lead nowhere by it', async () => {
    const home = newHome();
    const image = await scratch(get(), [
      folder('etc', 0o711),
      folder('data'),
      file('data/passwd', 'root:x:0:0::/:\n'),
      link('etc/passwd', '/data/passwd'),
      folder('etc/group'),
      file('etc/group/inside', 'x'),
    ]);
    const reference = await userImage(get(), image, home);
    const { files } = await boxOf(get(), reference, home);
    expect((await files.readAll('/data/passwd', 1000)).toString()).toBe('root:x:0:0::/:\n');
    expect((await files.readAll('/etc/passwd', 1000)).toString()).toMatch(/^sally:x:\d+:\d+:[^\n]*\n$/);
    expect((await files.readAll('/etc/group', 1000)).toString()).toBe(`sally:x:${home.gid}:\n`);
    expect(await files.lstat('/etc/passwd')).toMatchObject({ uid: 0, mode: 0o644 });
    // A folder that was there is as it was.
    expect(await files.stat('/etc')).toMatchObject({ uid: 0, mode: 0o711 });
  });

  it('[A11] leave what is in a home and in a working directory as it was, and /tmp and the root as they were', async () => {
    const image = await scratch(get(), [
      folder('home'),
      folder('home/sally', 0o700),
      file('home/sally/of-root', 'kept', 0o600),
      folder('tmp', 0o1777),
    ]);
    const home = newHome({ workdir: '/tmp' });
    const { uid, gid } = home;
    const { files } = await boxOf(get(), await userImage(get(), image, home), home);
    expect(await files.stat('/home/sally')).toMatchObject({ uid, gid, mode: 0o700 });
    expect(await files.stat('/home/sally/of-root')).toMatchObject({
      uid: 0,
      gid: 0,
      mode: 0o600,
      sizeBytes: 4,
    });
    const atRoot = newHome({ home: '/tmp', workdir: '/' });
    const plain = await boxOf(get(), await userImage(get(), image, atRoot), atRoot);
    expect(await plain.files.stat('/')).toMatchObject({ uid: 0 });
  });

  it('have the configuration of the image that they are made of', async () => {
    const home = newHome();
    const original = await provideTestImage(get());
    const reference = await userImage(get(), original, home);
    const config = async (image: string): Promise<Record<string, unknown>> => {
      const { Config } = await get().json<{ Config: Record<string, unknown> }>({
        method: 'GET',
        path: `/images/${image}/json`,
      });
      const { Entrypoint, Cmd, WorkingDir, User, Env } = Config;
      // Podman adds two of its own; a box's programs get the environment of the original.
      const env = (Env as string[]).filter((line) => !/^(TERM|container)=/.test(line)).sort();
      return { Entrypoint: Entrypoint ?? [], Cmd, WorkingDir, User, env };
    };
    expect(await config(reference)).toEqual(await config(testImage));
    expect(original.env).toMatchObject({ LANG: 'C.UTF-8' });
    const facts = await dockerImageEngine(get()).find(reference);
    expect(facts?.labels).toMatchObject({
      [label.owned]: 'true',
      [label.kind]: 'image-user',
      [label.base]: original.id,
      [label.inputs]: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
    const bare = await userImage(get(), await scratch(get()), home);
    const { Config } = await get().json<{ Config: Record<string, unknown> }>({
      method: 'GET',
      path: `/images/${bare}/json`,
    });
    expect([Config['Entrypoint'] ?? [], Config['Cmd'] ?? []]).toEqual([[], []]);
  });

  it('are made once, and then cost one question', async () => {
    const home = newHome();
    const image = await provideTestImage(get());
    const { engine, calls } = recorded(get());
    const images = new EngineBoxImages(engine);
    const references = await Promise.all(Array.from({ length: 4 }, () => images.forUser(image, home)));
    onTestFinished(() => removeImage(get(), references[0] ?? ''));
    expect(new Set(references).size).toBe(1);
    expect(calls.filter((call) => call === 'openDraft')).toHaveLength(1);
    calls.length = 0;
    expect(await images.forUser(image, home)).toBe(references[0]);
    expect(calls).toEqual(['find']);
    const other = await userImage(get(), image, { ...home, home: '/home/other' });
    expect(other).not.toBe(references[0]);
  });

  it('are made once also by several daemons at a time', async () => {
    const home = newHome();
    const image = await provideTestImage(get());
    const { inputs, reference } = userImageKey(image.id, home);
    onTestFinished(() => removeImage(get(), reference));
    const all = await Promise.all(
      Array.from({ length: 3 }, () => dockerBoxImages(get()).forUser(image, home)),
    );
    expect(all).toEqual([reference, reference, reference]);
    expect(await listImages(get(), [`${label.inputs}=${inputs}`])).toHaveLength(1);
    expect(await listContainers(get(), [`${label.inputs}=${inputs}`])).toEqual([]);
  });

  it('[A13] are made to the end though nobody waits any more', async () => {
    const home = newHome();
    const image = await provideTestImage(get());
    const images = dockerBoxImages(get());
    const { reference } = userImageKey(image.id, home);
    onTestFinished(() => removeImage(get(), reference));
    const controller = new AbortController();
    const first = images.forUser(image, home, controller.signal);
    const second = images.forUser(image, home);
    controller.abort();
    await expect(first).rejects.toMatchObject({ code: 'cancelled' });
    expect(await second).toBe(reference);
  });

  it('[A12] leave only what a sweep takes away later, when their maker dies half-way', async () => {
    const image = await scratch(get());
    const { inputs, reference, tag } = userImageKey(image.id, newHome());
    const draft = await dockerImageEngine(get()).openDraft({
      image: image.id,
      name: `sallyport-user-${tag}`,
      kind: 'image-user',
      labels: { [label.inputs]: inputs },
    });
    onTestFinished(() => draft.discard());
    const mine: [string] = [`${label.inputs}=${inputs}`];
    // A sweep of all that is there would take the drafts of other tests (sweep-stale.alone.test.ts does it alone).
    const helpers: [string, string] = [...mine, `${label.kind}=image-draft`];
    const [left, ...more] = await listContainers(get(), helpers);
    if (left === undefined) throw new Error('no draft');
    expect(more).toEqual([]);
    expect(isStale(left, Date.now(), 60_000)).toBe(false);
    expect(isStale(left, Date.now() + 120_000, 60_000)).toBe(true);
    expect(await dockerImageEngine(get()).find(reference)).toBeUndefined();
  });

  it('go when the image below them goes, and not while a box uses them', async () => {
    const image = await scratch(get());
    const images = dockerBoxImages(get());
    const home = newHome();
    const used = await userImage(get(), image, home);
    await userImage(get(), image, newHome());
    const engine = dockerBoxEngine(get(), readPorterBinary);
    const box = hardenedBox({
      name: unique(),
      image: used,
      porterVolume: await engine.providePorter(used),
      endsWithHost: false,
      labels: labels(ownedLabels('sandbox')),
    });
    const id = await engine.create(box);
    onTestFinished(() => engine.remove(id));
    expect(await images.removeDerived(image.id)).toBe(1);
    await engine.remove(id);
    await images.pruneDerived();
    const find = dockerImageEngine(get()).find;
    expect(await find(used)).toBeDefined();
    await removeImage(get(), image.reference);
    expect(await images.pruneDerived()).toBeGreaterThanOrEqual(1);
    expect(await find(used)).toBeUndefined();
    if (name === 'docker') expect(await find(image.id)).toBeUndefined();
  });

  it.each<[string, Partial<BoxHome>]>([
    ['root', { uid: 0 }],
    ['a number that is none', { uid: 1.5 }],
    ['the number that means nobody at all', { gid: 2 ** 32 - 1 }],
    ['a home that makes another entry', { home: '/home/x:/bin/sh\nroot' }],
    ['a home with a colon', { home: '/a:b' }],
    ['a home that is not absolute', { home: 'home' }],
    ['a working directory that climbs', { workdir: '/a/../etc' }],
  ])('[A11] are refused for %s', async (_what, more) => {
    const { engine, calls } = recorded(get());
    const image = { reference: testImage, id: 'sha256:0', env: {} };
    await expect(new EngineBoxImages(engine).forUser(image, newHome(more))).rejects.toMatchObject({
      code: 'refused_by_policy',
    });
    expect(calls).toEqual([]);
  });

  it('are refused where the home of the image is no folder', async () => {
    const image = await scratch(get(), [folder('data'), folder('home'), link('home/sally', '/data')]);
    const home = newHome();
    await expect(dockerBoxImages(get()).forUser(image, home)).rejects.toMatchObject({
      code: 'refused_by_policy',
    });
    const { inputs } = userImageKey(image.id, home);
    expect(await listContainers(get(), [`${label.inputs}=${inputs}`])).toEqual([]);
  });
}

describe('images for a user on Docker', () => {
  userImagesOn('docker', () => testEngine().connection);
});

when(asRoot, requirement('Podman', commandExists('podman'))).describe('images for a user on Podman', () => {
  let podman: PodmanService | undefined;

  beforeAll(async () => {
    podman = await startPodman();
    await copyImage(testEngine().connection, podman.connection, testImage);
  });
  afterAll(async () => {
    await podman?.stop();
  });

  userImagesOn('podman', () => {
    if (podman === undefined) throw new Error('Podman did not start');
    return podman.connection;
  });
});

describe('images by name', () => {
  const { connection, endpoint } = testEngine();
  const images = dockerBoxImages(connection);
  const progress = silent;

  it('are found by name, by name without a tag and by id', async () => {
    const [repository = ''] = testImage.split(':');
    const byName = await images.provide({ image: testImage }, { progress });
    expect(byName).toMatchObject({ reference: testImage, env: { LANG: 'C.UTF-8' } });
    const latest = await images.provide({ image: repository }, { progress });
    expect(latest.reference).toBe(`${repository}:latest`);
    const short = byName.id.replace('sha256:', '').slice(0, 12);
    expect(await images.provide({ image: short }, { progress })).toEqual({ ...byName, reference: byName.id });
    expect((await images.provide({ image: byName.id }, { progress })).id).toBe(byName.id);
  });

  it('[C6] are pulled on first use, with progress, and not again', async () => {
    const registry = await startRegistry();
    onTestFinished(() => registry.stop());
    const repository = `${registry.host}/${unique()}`;
    await tagImage(connection, testImage, { repository, tag: 'latest' });
    onTestFinished(() => removeImage(connection, `${repository}:latest`));
    await push(endpoint.replace('unix://', ''), repository, 'latest');
    await removeImage(connection, `${repository}:latest`);
    const events: ProgressEvent[] = [];
    const pulled = await images.provide({ image: repository }, { progress: (event) => events.push(event) });
    expect(pulled.reference).toBe(`${repository}:latest`);
    expect(events.map(({ step }) => step)).toContain('pull');
    events.length = 0;
    const again = await images.provide({ image: repository }, { progress: (event) => events.push(event) });
    expect(again).toEqual(pulled);
    expect(events).toEqual([]);
  });

  it('[C6] that no registry has are image_pull_failed', async () => {
    await expect(images.provide({ image: '127.0.0.1:1/nothing' }, { progress })).rejects.toMatchObject({
      code: 'image_pull_failed',
    });
  });

  it('[G8] the base image is there, or the advice says how it is made', async () => {
    const real = dockerImageEngine(connection);
    const empty: ImageEngine = { ...real, find: () => Promise.resolve(undefined) };
    await expect(new EngineBoxImages(empty).provide({}, { progress })).rejects.toMatchObject({
      code: 'image_missing',
      advice: expect.stringContaining('sally image bootstrap'),
    });
  });
});
