import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { removeContainer } from '../../src/engines/docker/containers/remove.ts';
import { waitForExit } from '../../src/engines/docker/containers/wait.ts';
import { dockerImageEngine } from '../../src/engines/docker/image-engine.ts';
import { bootstrapRootfs } from '../../src/images/bootstrap-rootfs.ts';
import { type EnsureImageOptions, ensureImage } from '../../src/images/ensure-image.ts';
import { provisionMarker } from '../../src/images/provision.ts';
import { readRecipe } from '../../src/images/recipe.ts';
import { type ProgressEvent, silent } from '../../src/lib/progress.ts';
import { label } from '../../src/protocol/labels.ts';
import { runContainer, testEngine } from '../support/engine.ts';
import { freePort } from '../support/free-port.ts';
import { asRoot, fullSizes, when } from '../support/selection.ts';
import { push, type Registry, startRegistry } from './images-registry.ts';

const run = promisify(execFile);
const { connection, endpoint, labels } = testEngine();
const engine = dockerImageEngine(connection);
const socketPath = endpoint.replace('unix://', '');

/** A base of its own gives each test a tag of its own: the cached images of this machine stay as they are. */
const options = (more: Partial<EnsureImageOptions> = {}): EnsureImageOptions => ({
  engine,
  progress: silent,
  consent: async () => true,
  labels: labels(),
  ...more,
});

/** Every image, also of single build steps, that descends from inputs with this hash. */
async function imagesOf(inputs: string): Promise<readonly string[]> {
  const rows = await connection.json<Array<{ Id: string }>>({
    method: 'GET',
    path: '/images/json',
    query: { all: true, filters: JSON.stringify({ label: [`${label.inputs}=${inputs}`] }) },
  });
  return rows.map((row) => row.Id);
}

async function inputsOf(baseReference: string): Promise<string> {
  return (await readRecipe('test', await engine.architecture(), baseReference)).inputs;
}

const abortAt =
  (abort: AbortController, wanted: RegExp, seen: ProgressEvent[] = []) =>
  (event: ProgressEvent) => {
    seen.push(event);
    if (wanted.test(event.message)) abort.abort();
  };

let temp: string;
beforeAll(async () => {
  temp = await mkdtemp(join(tmpdir(), 'sallyport-images-'));
});
afterAll(async () => {
  await rm(temp, { recursive: true, force: true });
});

when(asRoot).describe('an image made from packages', () => {
  const own = 'sallyport-images-test:bootstrap';
  let reference = '';

  afterAll(async () => {
    if (reference !== '') await engine.remove(reference);
  });

  it('is small, labelled and marked, and the second call finds it at once', {
    timeout: 300_000,
  }, async () => {
    const seen: ProgressEvent[] = [];
    const first = await ensureImage(
      'test',
      options({ offline: true, baseReference: own, progress: (event) => seen.push(event), tempDir: temp }),
    );
    reference = first.reference;
    expect(first.how).toBe('bootstrapped');
    expect(seen.some((event) => event.step === 'bootstrap')).toBe(true);
    expect(await readdir(temp)).toEqual([]);

    const facts = await engine.find(reference);
    expect(facts?.sizeBytes).toBeLessThan(120e6);
    expect(facts?.labels).toMatchObject({
      [label.owned]: 'true',
      [label.kind]: 'image-test',
      [label.inputs]: await inputsOf(own),
    });

    const second = await ensureImage('test', options({ offline: true, baseReference: own }));
    expect(second).toMatchObject({ how: 'present', id: first.id, reference });
    // Making it takes half a minute where nothing else goes on.
    expect(second.durationMs).toBeLessThan(10_000);
    // The build has run the smoke test; a marker in the image is its receipt.
    const script = `test -e ${provisionMarker} && test "$(id -u)" = 1000 && python3 -c 'import socket'`;
    expect(await exitCodeIn(reference, script)).toBe(0);
  });

  describe('and put into a registry', () => {
    let registry: Registry;
    beforeAll(async () => {
      registry = await startRegistry();
      const [, tag = ''] = reference.split(':');
      const source = await engine.find(reference);
      await engine.tag(source?.id ?? reference, `${registry.host}/rootfs`, tag);
      await push(socketPath, `${registry.host}/rootfs`, tag);
      await engine.remove(`${registry.host}/rootfs:${tag}`);
    });
    afterAll(async () => {
      await registry.stop();
    });

    it('[C6] is pulled with progress and built on', { timeout: 60_000 }, async () => {
      const base = `${registry.host}/rootfs:${reference.split(':')[1]}`;
      const seen: ProgressEvent[] = [];
      const made = await ensureImage(
        'test',
        options({ baseReference: base, progress: (event) => seen.push(event) }),
      );
      try {
        expect(made.how).toBe('pulled');
        expect(seen.filter((event) => event.step === 'pull').length).toBeGreaterThan(1);
        expect((await ensureImage('test', options({ baseReference: base }))).how).toBe('present');
      } finally {
        await engine.remove(made.reference);
        await engine.remove(base);
      }
    });
  });

  it('leaves no step of a build that is cancelled', async () => {
    const inputs = await inputsOf(reference);
    const before = await imagesOf(await inputsOf(own));
    const abort = new AbortController();
    const attempt = ensureImage(
      'test',
      options({ baseReference: reference, signal: abort.signal, progress: abortAt(abort, /: RUN /) }),
    );
    await expect(attempt).rejects.toMatchObject({ code: 'cancelled' });
    expect(await imagesOf(inputs)).toEqual([]);
    expect((await imagesOf(await inputsOf(own))).length).toBe(before.length);
  });
});

when(asRoot).describe('making an image from packages', () => {
  it('leaves no image, folder or process when it is cancelled in the middle', {
    timeout: 60_000,
  }, async () => {
    const own = 'sallyport-images-test:cancelled';
    const abort = new AbortController();
    const attempt = ensureImage(
      'test',
      options({
        offline: true,
        baseReference: own,
        tempDir: temp,
        signal: abort.signal,
        progress: abortAt(abort, /extracting archives/),
      }),
    );
    await expect(attempt).rejects.toMatchObject({ code: 'cancelled' });
    expect(await imagesOf(await inputsOf(own))).toEqual([]);
    expect(await readdir(temp)).toEqual([]);
    expect(await processesNaming(temp)).toEqual([]);
  });

  it('says so when the disk is full, and leaves nothing', { timeout: 60_000 }, async () => {
    const own = 'sallyport-images-test:full';
    const small = await mkdtemp(join(temp, 'small-'));
    await run('mount', ['-t', 'tmpfs', '-o', 'size=48m,mode=0755', 'tmpfs', small]);
    try {
      // Looked at before anything is made …
      await expect(
        ensureImage('test', options({ offline: true, baseReference: own, tempDir: small })),
      ).rejects.toMatchObject({ code: 'disk_full' });
      // … and met on the way, which is what happens when somebody else fills the disk meanwhile.
      const recipe = await readRecipe('test', await engine.architecture(), own);
      await expect(
        bootstrapRootfs(recipe, { engine, progress: silent, tempDir: small }),
      ).rejects.toMatchObject({ code: 'disk_full' });
      expect(await readdir(small)).toEqual([]);
      expect(await imagesOf(recipe.inputs)).toEqual([]);
      expect(await processesNaming(small)).toEqual([]);
    } finally {
      await run('umount', [small]);
      await rm(small, { recursive: true });
    }
  });

  it('[C6] is what a registry that is not there leads to', async () => {
    const base = `127.0.0.1:${await freePort()}/nothing:1`;
    const abort = new AbortController();
    const seen: ProgressEvent[] = [];
    const attempt = ensureImage(
      'test',
      options({
        baseReference: base,
        tempDir: temp,
        signal: abort.signal,
        progress: abortAt(abort, /running apt-get update/, seen),
      }),
    );
    await expect(attempt).rejects.toMatchObject({ code: 'cancelled' });
    expect(seen.find((event) => event.message.includes('packages instead'))?.step).toBe('pull');
    expect(await readdir(temp)).toEqual([]);
  });
});

when(fullSizes, asRoot).describe('the base image', () => {
  it('is made in full from packages, with everything it promises', { timeout: 300_000 }, async () => {
    const base = 'sallyport-images-test:full-base';
    const made = await ensureImage('base', options({ offline: true, baseReference: base }));
    try {
      expect(made.how).toBe('bootstrapped');
      expect((await engine.find(made.reference))?.sizeBytes).toBeLessThan(500e6);
      expect(await exitCodeIn(made.reference, 'git --version && node -p 6*7 && rg --version')).toBe(0);
    } finally {
      await engine.remove(made.reference);
    }
  });

  it('[C6] is built on a bare Debian from a registry, with its packages fetched', {
    timeout: 300_000,
  }, async () => {
    const registry = await startRegistry();
    const repository = `${registry.host}/debian`;
    const recipe = await readRecipe('base', await engine.architecture(), `${repository}:bare`);
    try {
      const bare = await bootstrapRootfs({ ...recipe, packages: [] }, { engine, progress: silent });
      await engine.tag(bare, repository, 'bare');
      await push(socketPath, repository, 'bare');
      await engine.remove(`${repository}:bare`);
      const made = await ensureImage('base', options({ baseReference: `${repository}:bare` }));
      expect(made.how).toBe('pulled');
      expect(await exitCodeIn(made.reference, 'git --version && node -p 6*7 && rg --version')).toBe(0);
    } finally {
      await engine.remove(`${recipe.repository}:${recipe.tag}`);
      await engine.remove(`${repository}:bare`);
      await registry.stop();
    }
  });
});

async function exitCodeIn(image: string, script: string): Promise<number> {
  const id = await runContainer(testEngine(), script, { image });
  const code = await waitForExit(connection, id, { timeoutMs: 30_000 });
  // At once, because the image can only be removed after its containers.
  await removeContainer(connection, id);
  return code;
}

/** Processes whose command line or environment names this folder. */
async function processesNaming(folder: string): Promise<readonly string[]> {
  const found: string[] = [];
  for (const pid of (await readdir('/proc')).filter(
    (name) => /^\d+$/.test(name) && name !== String(process.pid),
  )) {
    for (const file of ['cmdline', 'environ']) {
      // A process that ends while it is looked at is no leftover.
      const text = await readFile(`/proc/${pid}/${file}`, 'utf8').catch(() => '');
      if (text.includes(folder)) found.push(`${pid}: ${text.replaceAll('\0', ' ').slice(0, 200)}`);
    }
  }
  return found;
}
