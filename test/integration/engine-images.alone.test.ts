import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { describe, expect, it, onTestFinished } from 'vitest';
import { getArchive } from '../../src/engines/docker/containers/get-archive.ts';
import { listContainers } from '../../src/engines/docker/containers/list.ts';
import { type BuildOutput, type BuildRequest, buildImage } from '../../src/engines/docker/images/build.ts';
import { BuildSteps, removeBuildLeftovers } from '../../src/engines/docker/images/build-leftovers.ts';
import { importImage } from '../../src/engines/docker/images/import.ts';
import { findImage, inspectImage } from '../../src/engines/docker/images/inspect.ts';
import { listImages } from '../../src/engines/docker/images/list.ts';
import { pullImage } from '../../src/engines/docker/images/pull.ts';
import { removeImage } from '../../src/engines/docker/images/remove.ts';
import { tagImage } from '../../src/engines/docker/images/tag.ts';
import { engineEvents } from '../../src/engines/docker/system/events.ts';
import type { ProgressEvent } from '../../src/lib/progress.ts';
import { makeContainer, testEngine } from '../support/engine.ts';
import { tarStream, untar } from '../support/tar.ts';

const engine = testEngine();
const { connection } = engine;
const unique = (): string => `sallyport-test-${randomBytes(6).toString('hex')}`;

async function* build(
  lines: readonly string[],
  options: { readonly request?: BuildRequest; readonly signal?: AbortSignal } = {},
): AsyncGenerator<BuildOutput> {
  const context = await tarStream({ Dockerfile: [`FROM ${engine.image}`, 'USER 0', ...lines].join('\n') });
  // Without a network, as everything here: a test must not depend on the engine having one.
  const request = { noCache: true, networkMode: 'none', labels: engine.labels(), ...options.request };
  const call = options.signal === undefined ? {} : { signal: options.signal };
  const steps = new BuildSteps();
  onTestFinished(() => removeBuildLeftovers(connection, steps));
  for await (const output of buildImage(connection, context, request, call)) {
    steps.read(output.text);
    yield output;
  }
}

async function finish(output: AsyncGenerator<BuildOutput>): Promise<{ text: string; id: string }> {
  let text = '';
  let id = '';
  for await (const part of output) {
    text += part.text;
    if (part.imageId !== undefined) id = part.imageId;
  }
  if (id !== '') onTestFinished(() => removeImage(connection, id));
  return { text, id };
}

describe('building', () => {
  it('gives its output and the id of the image, which carries the labels', async () => {
    const tag = `${unique()}:1`;
    onTestFinished(() => removeImage(connection, tag));
    const { text, id } = await finish(
      build(['ARG word', 'RUN echo "said $word"'], { request: { tag, buildArgs: { word: 'hello' } } }),
    );
    expect(text).toContain('said hello\n');
    expect(await inspectImage(connection, tag)).toMatchObject({ id, labels: engine.labels() });
  });

  it('fails as image_build_failed when a RUN fails, with its output before', async () => {
    let text = '';
    const failing = (async () => {
      for await (const part of build(['RUN echo before; exit 4'])) text += part.text;
    })();
    await expect(failing).rejects.toMatchObject({
      code: 'image_build_failed',
      message: expect.stringContaining('non-zero code: 4'),
    });
    expect(text).toContain('before');
  });

  it.each([['NOT A DOCKERFILE'], ['FROM sallyport-test-none:none'], ['COPY absent /']])(
    'fails as image_build_failed on %s',
    async (line) => {
      await expect(finish(build([line]))).rejects.toMatchObject({
        code: 'image_build_failed',
      });
    },
  );

  it.each(['abort', 'leave'] as const)('is cancelled when its reader chooses to %s', async (how) => {
    const controller = new AbortController();
    const mark = unique();
    const died = (async () => {
      const events = engineEvents(connection, [`mark=${mark}`], {
        sinceSeconds: Math.floor(Date.now() / 1000),
      });
      let started: string | undefined;
      for await (const { action, id } of events) {
        if (action === 'start') started = id;
        else if (action === 'destroy' && id === started) return;
      }
    })();
    const run = (async () => {
      // The label is on the container of the RUN, because it is in the image's configuration by then.
      const output = build([`LABEL mark=${mark}`, 'RUN echo go; exec sleep 600'], controller);
      for await (const { text } of output) {
        if (text !== 'go\n') continue;
        if (how === 'leave') return;
        controller.abort();
      }
    })();
    if (how === 'abort') await expect(run).rejects.toMatchObject({ code: 'cancelled' });
    else await run;
    await died;
    expect(await listContainers(connection, [`mark=${mark}`])).toEqual([]);
  });
});

describe('importing', () => {
  it('makes an image of one layer from a tar stream, with labels and progress', async () => {
    const events: ProgressEvent[] = [];
    const rootfs = await tarStream({ 'etc/motd': 'hello' });
    const id = await importImage(
      connection,
      rootfs,
      { changes: [`LABEL dev.sallyport.test=${unique()} dev.sallyport.words="two words"`, 'CMD ["x"]'] },
      { progress: (event) => events.push(event) },
    );
    onTestFinished(() => removeImage(connection, id));
    expect(await inspectImage(connection, id)).toMatchObject({
      id,
      tags: [],
      labels: { 'dev.sallyport.words': 'two words' },
    });
    const container = await makeContainer(engine, { image: id });
    expect((await untar(await getArchive(connection, container, '/etc/motd'))).get('motd')?.toString()).toBe(
      'hello',
    );
  });

  it('leaves no image when its producer fails, and says what the producer said', async () => {
    const words = unique();
    const failure = new Error('the producer failed');
    const rootfs = Readable.from(
      (async function* () {
        yield Buffer.alloc(1_000_000);
        throw failure;
      })(),
    );
    const importing = importImage(connection, rootfs, { changes: [`LABEL words=${words}`] });
    await expect(importing).rejects.toBe(failure);
    expect(await listImages(connection, [`words=${words}`])).toEqual([]);
  });
});

describe('images', () => {
  it('are tagged, found, listed by label and removed, absent or not', async () => {
    const repository = unique();
    await tagImage(connection, engine.image, { repository, tag: 'a' });
    onTestFinished(() => removeImage(connection, `${repository}:a`));
    const image = await findImage(connection, `${repository}:a`);
    expect(image?.tags).toContain(`${repository}:a`);
    const [name, value] = Object.entries(image?.labels ?? {})[0] ?? ['none', ''];
    const listed = await listImages(connection, [`${name}=${value}`]);
    expect(listed.map(({ id }) => id)).toContain(image?.id);
    await removeImage(connection, `${repository}:a`);
    await removeImage(connection, `${repository}:a`);
    expect(await findImage(connection, `${repository}:a`)).toBeUndefined();
    const tagging = tagImage(connection, `${repository}:a`, { repository, tag: 'b' });
    await expect(tagging).rejects.toMatchObject({ code: 'image_missing' });
  });

  it('a registry that cannot be reached is image_pull_failed', async () => {
    await expect(pullImage(connection, '127.0.0.1:1/nothing:here')).rejects.toMatchObject({
      code: 'image_pull_failed',
    });
    await expect(pullImage(connection, 'no-tag')).rejects.toMatchObject({ code: 'usage' });
  });
});
