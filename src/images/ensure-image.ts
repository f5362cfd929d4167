/**
 * Makes sure that an image of ours is in the engine: there already, else built on a pulled Debian, else on a root file
 * system made here from packages. Nothing is tagged before it is whole, and a way that failed takes back what it made.
 */

import { tmpdir } from 'node:os';
import type { Progress } from '../lib/progress.ts';
import { label } from '../protocol/labels.ts';
import type { ImageEngine, ImageFacts } from '../sandboxes/ports.ts';
import { bootstrapRootfs } from './bootstrap-rootfs.ts';
import { buildOn } from './build-on.ts';
import { removeDerived } from './derived-images.ts';
import { requireRoom } from './free-space.ts';
import { requireMmdebstrap } from './mmdebstrap.ts';
import type { BuildTurns } from './ports.ts';
import { isWorthAnotherWay, pullBase } from './pull-base.ts';
import { defaultBase, type ImageKind, type Recipe, readRecipe } from './recipe.ts';
import type { RegistryCredentials } from './registry-credentials.ts';
import { removeUnlessUsed } from './remove-unless-used.ts';

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
  /** Where others may make the same at the same time: who comes second waits, and finds it. */
  readonly turns?: BuildTurns;
  /** For the registry. */
  readonly credentials?: RegistryCredentials;
}

export interface EnsuredImage {
  readonly reference: string;
  readonly id: string;
  /** `built`: a template, on the base image. */
  readonly how: 'present' | 'pulled' | 'bootstrapped' | 'built';
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
  const found = await engine.find(reference, signal);
  if (found?.labels[label.inputs] === recipe.inputs && deps.rebuild !== true)
    return result(found.id, 'present');
  return await inTurn(recipe, deps, async (before) => {
    if (before?.labels[label.inputs] === recipe.inputs && deps.rebuild !== true)
      return result(before.id, 'present');
    const made = await make(recipe, deps);
    await engine.tag(made.id, recipe.repository, recipe.tag);
    if (recipe.isDefault) await engine.tag(made.id, recipe.repository, 'latest');
    await removeReplaced(engine, before, made.id);
    return result(made.id, made.how);
  });
}

/** `work` is given what is there when it is this one's turn: another process may have made it meanwhile. */
export async function inTurn<T>(
  { repository, tag }: { readonly repository: string; readonly tag: string },
  { engine, turns, signal }: Pick<EnsureImageOptions, 'engine' | 'turns' | 'signal'>,
  work: (before: ImageFacts | undefined) => Promise<T>,
): Promise<T> {
  const leave = await turns?.take(`sallyport-build-${tag}`, signal);
  try {
    return await work(await engine.find(`${repository}:${tag}`, signal));
  } finally {
    await leave?.();
  }
}

export async function removeReplaced(
  engine: ImageEngine,
  before: ImageFacts | undefined,
  id: string,
): Promise<void> {
  if (before === undefined || before.id === id) return;
  await removeDerived(engine, before.id);
  await removeUnlessUsed(engine, before.id);
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
