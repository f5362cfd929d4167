/** The gate before an image of ours is used, on real images with a made-up program that they promise. */

import { rm } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { removeContainer } from '../../src/engines/docker/containers/remove.ts';
import { waitForExit } from '../../src/engines/docker/containers/wait.ts';
import { dockerImageEngine } from '../../src/engines/docker/image-engine.ts';
import { EngineBoxImages } from '../../src/images/box-images.ts';
import { type EnsureTemplateOptions, ensureTemplate } from '../../src/images/ensure-template.ts';
import { ProvisionGate } from '../../src/images/gate.ts';
import { provisionMarker } from '../../src/images/provision.ts';
import { readTemplate, type TemplatePlace } from '../../src/images/template.ts';
import { silent } from '../../src/lib/progress.ts';
import { label } from '../../src/protocol/labels.ts';
import type { ImageEngine, ImageFacts } from '../../src/sandboxes/ports.ts';
import { runContainer, testEngine } from '../support/engine.ts';
import { buildLayer } from '../support/image-layer.ts';
import { madeUpHere, madeUpTemplate, promised } from '../support/made-up-template.ts';

const test = testEngine();
const { connection, labels, image: testImage } = test;
const engine = dockerImageEngine(connection);

const options = (more: Partial<EnsureTemplateOptions> = {}): EnsureTemplateOptions => ({
  engine,
  progress: silent,
  consent: async () => true,
  offline: true,
  labels: labels(),
  ...more,
});

interface Gate {
  readonly images: EngineBoxImages;
  readonly warnings: string[];
  readonly log: string[];
  readonly looks: () => number;
}

function gateFor(place: TemplatePlace): Gate {
  const seen = new Set<string>();
  const warnings: string[] = [];
  const log: string[] = [];
  let looks = 0;
  const counting: ImageEngine = {
    ...engine,
    tryOut: (...call) => {
      looks += 1;
      return engine.tryOut(...call);
    },
  };
  const gate = new ProvisionGate({
    engine: counting,
    passed: { has: (id) => seen.has(id), add: (id) => seen.add(id) },
    report: (message) => log.push(message),
    placeOf: () => place,
    labels: labels(),
  });
  return { images: new EngineBoxImages(counting, { gate }), warnings, log, looks: () => looks };
}

/** Removes what a template left under its names. */
const forget = async (name: string): Promise<void> => {
  for (const tag of (await engine.find(`sallyport-${name}:latest`))?.tags ?? []) await engine.remove(tag);
};

async function succeedsIn(image: string, script: string): Promise<boolean> {
  const id = await runContainer(test, script, { image });
  try {
    return (await waitForExit(connection, id, { timeoutMs: 30_000 })) === 0;
  } finally {
    await removeContainer(connection, id);
  }
}

const factsOf = async (reference: string): Promise<ImageFacts> => {
  const facts = await engine.find(reference);
  if (facts === undefined) throw new Error(`${reference} is not there`);
  return facts;
};

const provide = (gate: Gate, reference: string) =>
  gate.images.provide(
    { image: reference },
    { progress: silent, note: (_code, message) => gate.warnings.push(message) },
  );

const copiesFind = `cp /usr/bin/find ${promised} && chmod 755 ${promised}`;

/** Building takes long on a machine that has other work. */
const patient = { timeout: 180_000 };

describe('an image that was made from a template', patient, () => {
  let place: TemplatePlace;
  let reference = '';
  let good: ImageFacts;
  beforeAll(async () => {
    place = await madeUpTemplate({ install: copiesFind });
    const made = await ensureTemplate(place, options());
    reference = made.reference;
    good = await factsOf(reference);
  });
  afterAll(async () => {
    await forget(place.name);
    await rm(place.folder, { recursive: true, force: true });
  });

  it('[R1] has a tag of its inputs, labels, a marker, and is there the second time', async () => {
    const { inputs } = await readTemplate(place, await engine.architecture());
    expect(reference).toBe(`sallyport-${place.name}:${inputs.slice(0, 12)}`);
    expect(good.labels).toMatchObject({
      [label.owned]: 'true',
      [label.kind]: 'image-template',
      [label.template]: place.name,
      [label.inputs]: inputs,
    });
    expect(await succeedsIn(reference, `test -f ${provisionMarker} && test "$(id -u)" = 1000`)).toBe(true);
    const again = await ensureTemplate(place, options());
    expect(again).toMatchObject({ how: 'present', id: good.id });
  });

  it('[G10] passes the gate, and is not looked at twice', async () => {
    const gate = gateFor(place);
    const both = await Promise.all([provide(gate, reference), provide(gate, reference)]);
    expect(both.map(({ id }) => id)).toEqual([good.id, good.id]);
    await provide(gate, reference);
    expect(gate.looks()).toBe(1);
    expect(gate.warnings).toEqual([]);
  });

  it.each([
    ['has the marker but not the program', `RUN rm ${promised}`, 'promised'],
    [
      'has the marker of an older version',
      `RUN mv ${provisionMarker} ${provisionMarker.replace(/\d+$/, '0')}`,
      'marker',
    ],
    ['has no marker', `RUN rm ${provisionMarker}`, 'marker'],
    ['has a program that does not start', `RUN printf 'no program' >${promised}`, 'promised'],
    ['is half extracted', `RUN head -c 9000 /usr/bin/find >${promised}`, 'promised'],
  ])('[G9] [G10] is provisioned again with a loud warning when it %s', async (_what, lines, complaint) => {
    const poisoned = await buildLayer(test, reference, lines);
    const name = `sallyport-${place.name}`;
    await engine.tag(poisoned, name, 'poisoned');
    onTestFinished(() => engine.remove(`${name}:poisoned`));
    const gate = gateFor(place);
    const healed = await provide(gate, `${name}:poisoned`);
    expect(healed.id).not.toBe(poisoned);
    expect(gate.warnings).toEqual([expect.stringContaining(complaint)]);
    expect(gate.log).toEqual(gate.warnings);
    expect((await factsOf(`${name}:poisoned`)).id).toBe(healed.id);
    const markers = `test "$(ls -a /opt/sallyport | grep -c provisioned)" = 1 && test -f ${provisionMarker}`;
    expect(await succeedsIn(healed.id, `promised --version && ${markers}`)).toBe(true);
    // Once healed it is as good as any.
    await provide(gate, `${name}:poisoned`);
    expect(gate.looks()).toBe(2);
  });

  it('[G10] made by another version is looked at by its own promises, and refused if it breaks them', async () => {
    const other = { [label.inputs]: 'f'.repeat(64) };
    const name = `sallyport-${place.name}`;
    onTestFinished(async () => {
      for (const tag of ['whole', 'broken']) await engine.remove(`${name}:${tag}`);
    });
    const whole = await buildLayer(test, reference, 'RUN true', other);
    await engine.tag(whole, name, 'whole');
    const broken = await buildLayer(test, reference, `RUN rm ${promised}`, other);
    await engine.tag(broken, name, 'broken');
    const gate = gateFor(place);
    expect((await provide(gate, `${name}:whole`)).id).toBe(whole);
    await expect(provide(gate, `${name}:broken`)).rejects.toMatchObject({
      code: 'image_unprovisioned',
      details: { broken: [expect.stringContaining('promised')] },
    });
    expect(gate.warnings).toHaveLength(1);
  });

  it('[G10] of somebody else promises nothing and is not looked at', async () => {
    const gate = gateFor(place);
    await provide(gate, testImage);
    expect(gate.looks()).toBe(0);
  });
});

describe('an install that does not do what it says', patient, () => {
  it.each([
    ['exits 0 and writes nothing', 'true'],
    // Root could run it while the image was built; nobody in a sandbox can.
    ['is found out only inside a sandbox', `${copiesFind} && chmod 700 ${promised}`],
  ])('[G10] %s: nothing is tagged and no marker set, neither at first nor again', async (_what, install) => {
    const place = await madeUpHere({ install });
    await expect(ensureTemplate(place, options())).rejects.toMatchObject({
      code: 'image_unprovisioned',
    });
    const template = await readTemplate(place, await engine.architecture());
    expect(await engine.find(`${template.repository}:${template.tag}`)).toBeUndefined();
    // As an image that has lost its program since: it is tried once more, and refused.
    const lost = await buildLayer(test, testImage, `RUN touch ${provisionMarker}`, {
      [label.kind]: 'image-template',
      [label.template]: place.name,
      [label.inputs]: template.inputs,
      ...labels(),
    });
    await engine.tag(lost, template.repository, template.tag);
    onTestFinished(() => forget(place.name));
    onTestFinished(() => engine.remove(`${template.repository}:${template.tag}`));
    const gate = gateFor(place);
    await expect(provide(gate, `${template.repository}:${template.tag}`)).rejects.toMatchObject({
      code: 'image_unprovisioned',
    });
    expect(gate.warnings).toHaveLength(1);
    expect((await factsOf(`${template.repository}:${template.tag}`)).id).toBe(lost);
  });
});
