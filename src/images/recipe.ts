/**
 * What an image is made from, read from `images/`, and the hash that names it. The hash covers the inputs and nothing of
 * this machine, so two machines agree on it, whichever way each of them made the image.
 */

import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { packageInfo } from '../lib/package-root.ts';
import { provisionVersion } from './provision.ts';

export type ImageKind = 'base' | 'test';
/** A template is built on the base image, or from the packages of both. */
export type RecipeKind = ImageKind | 'template';

/** Raise it when the way of making changes the result without changing a file of the recipe. */
const recipeVersion = 1;

export const suite = 'bookworm';
export const defaultBase = `debian:${suite}-slim`;

/** mmdebstrap's names for what is there before the packages: the slim image's own set, or the bare minimum without apt. */
const variants = { base: 'minbase', test: 'essential' } as const satisfies Record<ImageKind, string>;

export interface ContextFile {
  readonly name: string;
  readonly content: Buffer;
}

export interface Recipe {
  readonly kind: RecipeKind;
  readonly architecture: string;
  readonly variant: string;
  readonly packages: readonly string[];
  /** The file with dpkg's path excludes, as mmdebstrap takes it. */
  readonly excludesPath: string;
  readonly files: readonly ContextFile[];
  readonly inputs: string;
  readonly repository: string;
  readonly tag: string;
  /** True for what `latest` should name: an image on the default base. */
  readonly isDefault: boolean;
}

export async function readRecipe(
  kind: ImageKind,
  architecture: string,
  baseReference: string = defaultBase,
): Promise<Recipe> {
  const folder = join(packageInfo().root, 'images');
  const own = ['packages.txt', 'smoke.txt'].map((name) => ({ name, path: join(folder, kind, name) }));
  const shared = ['provision.sh', 'dpkg-excludes'].map((name) => ({ name, path: join(folder, name) }));
  // One Dockerfile for every kind: they differ in what is installed, not in how.
  const dockerfile = { name: 'Dockerfile', path: join(folder, 'base', 'Dockerfile') };
  const files = await Promise.all(
    [dockerfile, ...own, ...shared].map(async ({ name, path }) => ({ name, content: await readFile(path) })),
  );
  const variant = variants[kind];
  const isDefault = baseReference === defaultBase;
  const inputs = hashInputs(
    { recipeVersion, provisionVersion, kind, suite, architecture, variant, base: baseReference },
    files,
  );
  const packages = files.find((file) => file.name === 'packages.txt')?.content.toString('utf8') ?? '';
  return {
    kind,
    architecture,
    variant,
    packages: parsePackages(packages),
    excludesPath: join(folder, 'dpkg-excludes'),
    files,
    inputs,
    repository: `sallyport-${kind}`,
    tag: inputs.slice(0, 12),
    isDefault,
  };
}

export function hashInputs(
  facts: Readonly<Record<string, string | number>>,
  files: readonly ContextFile[],
): string {
  const hash = createHash('sha256');
  for (const [name, value] of Object.entries(facts).sort(byName)) hash.update(`${name}=${value}\n`);
  for (const [name, content] of files.map((file) => [file.name, file.content] as const).sort(byName)) {
    // The digest, not the bytes: no content can then pass for the name of the next file.
    hash.update(`${name}:${createHash('sha256').update(content).digest('hex')}\n`);
  }
  return hash.digest('hex');
}

export function parsePackages(text: string): readonly string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'));
}

function byName(a: readonly [string, unknown], b: readonly [string, unknown]): number {
  return a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0;
}
