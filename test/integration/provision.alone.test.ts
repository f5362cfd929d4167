/** `sally provision`, and the gate as somebody meets it who only wants a sandbox. */

import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { dockerImageEngine } from '../../src/engines/docker/image-engine.ts';
import { removeDerived } from '../../src/images/derived-images.ts';
import { provisionMarker } from '../../src/images/provision.ts';
import { label } from '../../src/protocol/labels.ts';
import { makeBox, removeAfterwards, sally } from '../support/cli.ts';
import { testEngine } from '../support/engine.ts';
import { buildLayer } from '../support/image-layer.ts';
import { fullSizes, when } from '../support/selection.ts';
import { stateFolder } from '../support/state-folder.ts';

const test = testEngine();
const engine = dockerImageEngine(test.connection);

/** One that another version made of a template: nobody here knows its promises but itself. */
async function olderImage(lines: string): Promise<string> {
  const id = await buildLayer(test, test.image, lines, {
    [label.kind]: 'image-template',
    [label.template]: 'coding',
    [label.inputs]: 'f'.repeat(64),
    ...test.labels(),
  });
  const repository = `sallyport-older-${randomBytes(5).toString('hex')}`;
  await engine.tag(id, repository, '1');
  onTestFinished(async () => {
    await removeDerived(engine, id);
    await engine.remove(`${repository}:1`);
  });
  return `${repository}:1`;
}

interface Told {
  readonly type: string;
  readonly code?: string;
  readonly message?: string;
}

async function eventsOf(box: string): Promise<readonly Told[]> {
  const { stdout } = await sally(['events', box, '--json']);
  return stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Told);
}

describe('a sandbox on an image of ours', { timeout: 120_000 }, () => {
  it('[G10] is not made when the image breaks its promises, and says so loudly', async () => {
    const image = await olderImage(`RUN rm ${provisionMarker}`);
    const name = `refused-${randomBytes(4).toString('hex')}`;
    removeAfterwards(name);
    const made = await sally(['create', '--name', name, '--image', image]);
    expect(made.code).not.toBe(0);
    expect(made.stderr).toContain('does not keep what it promises');
    const notes = (await eventsOf(name)).filter(({ type }) => type === 'sandbox.note');
    expect(notes).toEqual([
      expect.objectContaining({
        code: 'image_unprovisioned',
        message: expect.stringContaining(provisionMarker),
      }),
    ]);
    const log = await readFile(join(stateFolder(), 'daemon.log'), 'utf8');
    expect(log).toContain(`${image} does not keep what it promises`);
  });

  it('[G10] is made when it keeps them, and the image is remembered', async () => {
    const image = await olderImage('RUN true');
    const made = await sally(['create', '--image', image]);
    removeAfterwards(made.stdout.trim());
    expect(made).toMatchObject({ code: 0 });
    const passed = await readFile(join(stateFolder(), 'passed-images'), 'utf8');
    expect(passed).toContain((await engine.find(image))?.id);
    expect((await eventsOf(made.stdout.trim())).some(({ type }) => type === 'sandbox.note')).toBe(false);
  });
});

describe('sally provision', () => {
  it.each([
    ['variables', ['-e', 'TOKEN=hidden-value'], [], 'envs'],
    ['run a command', [], ['true'], 'has run 1 command'],
  ])('[G8] refuses a sandbox that has %s', async (_what, options, command, reason) => {
    const name = await makeBox(options);
    if (command.length > 0) await sally(['exec', name, ...command]);
    const refused = await sally(['provision', name, '--json']);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain('cannot become the base image');
    expect(refused.stderr).toContain(reason);
    expect(JSON.parse(refused.stdout)).toMatchObject({ error: { code: 'provision_refused' } });
    expect(refused.stdout + refused.stderr).not.toContain('hidden-value');
  });

  it('[G8] says so when there is neither a template nor a sandbox of that name', async () => {
    const refused = await sally(['provision', 'no-such-thing']);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain('no-such-thing');
  });

  /** It makes the base image first, and gives its name to what it made. */
  when(fullSizes).it(
    '[G8] makes the base image of later sandboxes out of a fresh one',
    { timeout: 600_000 },
    async () => {
      const base = JSON.parse((await sally(['provision', 'base', '--json'])).stdout) as { id: string };
      const name = await makeBox(['--image', base.id]);
      const provisioned = await sally(['provision', name, '--json']);
      expect(provisioned).toMatchObject({ code: 0 });
      const made = JSON.parse(provisioned.stdout) as { id: string };
      onTestFinished(async () => {
        await sally(['provision', 'base']);
        await removeDerived(engine, made.id);
        await engine.remove(made.id);
      });
      expect(made).toMatchObject({ reference: 'sallyport-base:latest', base: 'sallyport-base:latest' });
      expect((await engine.find('sallyport-base:latest'))?.id).toBe(made.id);
      const later = await sally(['create']);
      removeAfterwards(later.stdout.trim());
      const [view] = JSON.parse((await sally(['inspect', later.stdout.trim()])).stdout);
      expect(view.image).toBe('sallyport-base:latest');
      expect((await sally(['exec', later.stdout.trim(), 'git', '--version'])).code).toBe(0);
    },
  );
});
