/**
 * Makes sure that a template's image is in the engine: there already, else built on the base image, else, where a build has
 * no network, from the packages of both. It is tagged when it has been seen to keep its promises inside a sandbox, not before.
 */

import { tmpdir } from 'node:os';
import type { SallyportError } from '../protocol/errors.ts';
import { label } from '../protocol/labels.ts';
import { bootstrapRootfs } from './bootstrap-rootfs.ts';
import { buildTemplate } from './build-template.ts';
import {
  type EnsuredImage,
  type EnsureImageOptions,
  ensureImage,
  inTurn,
  removeReplaced,
} from './ensure-image.ts';
import { requireRoom } from './free-space.ts';
import { requireMmdebstrap } from './mmdebstrap.ts';
import { isWorthAnotherWay } from './pull-base.ts';
import { removeUnlessUsed } from './remove-unless-used.ts';
import { readTemplate, type Template, type TemplatePlace, templatePlace } from './template.ts';

export type EnsureTemplateOptions = Omit<EnsureImageOptions, 'baseReference'>;

export async function ensureTemplate(
  place: string | TemplatePlace,
  deps: EnsureTemplateOptions,
): Promise<EnsuredImage> {
  const startedMs = performance.now();
  const { engine, signal } = deps;
  const template = await readTemplate(
    typeof place === 'string' ? templatePlace(place) : place,
    await engine.architecture(signal),
  );
  const reference = `${template.repository}:${template.tag}`;
  const result = (id: string, how: EnsuredImage['how']): EnsuredImage => ({
    reference,
    id,
    how,
    durationMs: Math.round(performance.now() - startedMs),
  });
  const found = await engine.find(reference, signal);
  if (found?.labels[label.inputs] === template.inputs && deps.rebuild !== true)
    return result(found.id, 'present');
  return await inTurn(template, deps, async (before) => {
    if (before?.labels[label.inputs] === template.inputs && deps.rebuild !== true)
      return result(before.id, 'present');
    const made = await make(template, deps);
    await engine.tag(made.id, template.repository, 'latest');
    await removeReplaced(engine, before, made.id);
    return result(made.id, made.how);
  });
}

type Made = Pick<EnsuredImage, 'id' | 'how'>;

async function make(template: Template, deps: EnsureTemplateOptions): Promise<Made> {
  try {
    return await makeOnBase(template, deps);
  } catch (error) {
    if (!isWorthAnotherWay(error) || isFinal(error) || !template.addsPackages) throw error;
    deps.progress({
      step: 'build',
      message: `${error.message}; making the image from the distribution's packages instead`,
    });
  }
  return await makeFromPackages(template, deps);
}

/** Another way of installing would fail in the same place. */
function isFinal(error: SallyportError): boolean {
  return error.code === 'npm_failed' || error.code === 'image_unprovisioned';
}

/** The Dockerfile is ours and fetches signed packages, so it may have the network of the engine's machine. */
async function makeOnBase(template: Template, deps: EnsureTemplateOptions): Promise<Made> {
  const base = await ensureImage(template.on, { ...deps, rebuild: false });
  return { id: await build(base.id, template, deps, { needsNetwork: template.addsPackages }), how: 'built' };
}

async function makeFromPackages(template: Template, deps: EnsureTemplateOptions): Promise<Made> {
  const { engine, engineDataRoot, tempDir = tmpdir() } = deps;
  await requireRoom('template', [tempDir, ...(engineDataRoot === undefined ? [] : [engineDataRoot])]);
  await requireMmdebstrap(deps);
  const rootfs = await bootstrapRootfs(template, deps);
  try {
    return { id: await build(rootfs, template, deps, { needsNetwork: false }), how: 'bootstrapped' };
  } catch (error) {
    await removeUnlessUsed(engine, rootfs);
    throw error;
  }
}

async function build(
  base: string,
  template: Template,
  deps: EnsureTemplateOptions,
  network: { readonly needsNetwork: boolean },
): Promise<string> {
  const freshness = deps.rebuild === true ? { freshness: new Date().toISOString() } : {};
  return await buildTemplate(base, template, template, { ...deps, ...freshness, ...network });
}
