/**
 * Makes sure that an image of ours is in the engine: there already, else built on a pulled Debian, else on a root file
 * system made here from packages. Nothing is tagged before it is whole, and a way that failed takes back what it made.
 */

import { tmpdir } from 'node:os';
import type { Progress } from '../lib/progress.ts';
import { isSallyportError } from '../protocol/errors.ts';
import { label } from '../protocol/labels.ts';
import type { ImageEngine } from '../sandboxes/ports.ts';
import { bootstrapRootfs } from './bootstrap-rootfs.ts';
import { buildOn } from './build-on.ts';
import { removeDerived } from './derived-images.ts';
import { requireRoom } from './free-space.ts';
import { requireMmdebstrap } from './mmdebstrap.ts';
import { isWorthAnotherWay, pullBase } from './pull-base.ts';
import { defaultBase, type ImageKind, type Recipe, readRecipe } from './recipe.ts';

export interface EnsureImageOptions {
  readonly engine: ImageEngine;
  readonly progress: Progress;
  /** Asked before packages are installed on this machine. */
  readonly consent: (packages: readonly string[]) => Promise<boolean>;
  /** No registry is asked. */
  readonly offline?: boolean;
  readonly rebuild?: boolean;
  /** Another image to build on, with a tag or a digest. The result has a tag of its own and does not become `latest`. */
  readonly baseReference?: string;
  readonly signal?: AbortSignal;
  /** Where the engine keeps its data, if that is on this machine: looked at for free space. */
  readonly engineDataRoot?: string;
  readonly tempDir?: string;
  readonly labels?: Readonly<Record<string, string>>;
}

export interface EnsuredImage {
  readonly reference: string;
  readonly id: string;
  readonly how: 'present' | 'pulled' | 'bootstrapped';
  readonly durationMs: number;
}

/** The name of the image that `ensureImage` makes, whether it is there or not. */
export async function defaultImageReference(kind: ImageKind, architecture: string): Promise<string> {
  return referenceOf(await readRecipe(kind, architecture));
}

export async function ensureImage(kind: ImageKind, deps: EnsureImageOptions): Promise<EnsuredImage> {
  const startedMs = performance.now();
  const { engine, signal } = deps;
  const recipe = await readRecipe(kind, await engine.architecture(signal), deps.baseReference);
  const reference = referenceOf(recipe);
  const result = (id: string, how: EnsuredImage['how']): EnsuredImage => ({
    reference,
    id,
    how,
    durationMs: Math.round(performance.now() - startedMs),
  });
  const before = await engine.find(reference, signal);
  if (before?.labels[label.inputs] === recipe.inputs && deps.rebuild !== true) {
    return result(before.id, 'present');
  }
  const made = await make(recipe, deps);
  await engine.tag(made.id, recipe.repository, recipe.tag);
  if (recipe.isDefault) await engine.tag(made.id, recipe.repository, 'latest');
  if (before !== undefined && before.id !== made.id) {
    await removeDerived(engine, before.id);
    await removeUnlessUsed(engine, before.id);
  }
  return result(made.id, made.how);
}

function referenceOf(recipe: Recipe): string {
  return `${recipe.repository}:${recipe.tag}`;
}

type Made = Pick<EnsuredImage, 'id' | 'how'>;

async function make(recipe: Recipe, deps: EnsureImageOptions): Promise<Made> {
  if (deps.offline !== true) {
    try {
      return await makeFromRegistry(recipe, deps);
    } catch (error) {
      if (!isWorthAnotherWay(error)) throw error;
      deps.progress({
        step: 'pull',
        message: `${error.message}; making the image from the distribution's packages instead`,
      });
    }
  }
  return await makeFromPackages(recipe, deps);
}

async function makeFromRegistry(recipe: Recipe, deps: EnsureImageOptions): Promise<Made> {
  const { engine, signal } = deps;
  const base = deps.baseReference ?? defaultBase;
  const wasThere = (await engine.find(base, signal)) !== undefined;
  if (!wasThere || deps.rebuild === true) await pullBase(base, deps);
  try {
    return {
      id: await buildOn(base, recipe, { ...deps, ...freshness(deps), needsNetwork: true }),
      how: 'pulled',
    };
  } catch (error) {
    if (!wasThere) await removeUnlessUsed(engine, base);
    throw error;
  }
}

async function makeFromPackages(recipe: Recipe, deps: EnsureImageOptions): Promise<Made> {
  const { engine, engineDataRoot, tempDir = tmpdir() } = deps;
  await requireRoom(recipe.kind, [tempDir, ...(engineDataRoot === undefined ? [] : [engineDataRoot])]);
  await requireMmdebstrap(deps);
  const rootfs = await bootstrapRootfs(recipe, deps);
  try {
    return { id: await buildOn(rootfs, recipe, { ...deps, needsNetwork: false }), how: 'bootstrapped' };
  } catch (error) {
    await removeUnlessUsed(engine, rootfs);
    throw error;
  }
}

/** A pulled base is the same bytes as before, so the builder's cache would make `rebuild` a no-op. */
function freshness(deps: EnsureImageOptions): { readonly freshness?: string } {
  return deps.rebuild === true ? { freshness: new Date().toISOString() } : {};
}

/** A sandbox may still run on it, or another image be built on it: then it is not ours to remove. */
async function removeUnlessUsed(engine: ImageEngine, reference: string): Promise<void> {
  try {
    await engine.remove(reference);
  } catch (error) {
    if (!isSallyportError(error, 'engine_conflict')) throw error;
  }
}
