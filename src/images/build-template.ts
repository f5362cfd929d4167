/**
 * Runs a template's install surface in a build, proves the result inside a sandbox, and only then marks it. The marker is
 * written here and nowhere else, so nothing that failed can pass for provisioned later (G10).
 */

import { Readable } from 'node:stream';
import { packTar } from 'modern-tar';
import { packTar as packFolder, type TarSource } from 'modern-tar/fs';
import type { Progress } from '../lib/progress.ts';
import { SallyportError } from '../protocol/errors.ts';
import { label } from '../protocol/labels.ts';
import type { ImageEngine } from '../sandboxes/ports.ts';
import { buildOn } from './build-on.ts';
import { checkPromises } from './check-promises.ts';
import { fetchPackages, isForTheImage } from './npm-fetch.ts';
import { provisionMarker } from './provision.ts';
import { removeUnlessUsed } from './remove-unless-used.ts';
import type { Template } from './template.ts';

export interface BuildTemplateOptions {
  readonly engine: ImageEngine;
  readonly progress: Progress;
  readonly signal?: AbortSignal | undefined;
  readonly labels?: Readonly<Record<string, string>> | undefined;
  readonly needsNetwork: boolean;
  readonly freshness?: string | undefined;
  readonly tempDir?: string | undefined;
}

export interface TaggedAs {
  readonly repository: string;
  readonly tag: string;
  readonly labels?: Readonly<Record<string, string>>;
}

/** The id of the marked and tagged image. Nothing is tagged when it fails. */
export async function buildTemplate(
  base: string,
  template: Template,
  as: TaggedAs,
  options: BuildTemplateOptions,
): Promise<string> {
  const { engine, progress, signal } = options;
  const built = await buildUnmarked(base, template, options);
  try {
    progress({ step: 'verify', message: `trying what ${template.repository} promises` });
    const broken = await checkPromises(engine, {
      image: built,
      promises: template.promises,
      marker: false,
      labels: options.labels,
      signal,
    });
    if (broken.length > 0) throw unprovisioned(template.repository, broken);
    return await mark(engine, built, template, as);
  } catch (error) {
    await removeUnlessUsed(engine, built);
    throw error;
  }
}

const templateLabels = ({ kind, name }: Template): Record<string, string> =>
  kind === 'template' ? { [label.template]: name } : {};

export function unprovisioned(
  what: string,
  broken: readonly string[],
  cause?: unknown,
  advice?: string,
): SallyportError {
  return new SallyportError(
    'image_unprovisioned',
    `${what} does not keep what it promises: ${broken.slice(0, 3).join(' · ')}`,
    { details: { broken }, cause, ...(advice === undefined ? {} : { advice }) },
  );
}

async function buildUnmarked(
  base: string,
  template: Template,
  options: BuildTemplateOptions,
): Promise<string> {
  const { npm } = template;
  const fetched =
    npm === undefined
      ? undefined
      : await fetchPackages(npm, { ...options, architecture: template.architecture });
  try {
    return await buildOn(base, template, {
      ...options,
      onHostNetwork: true,
      buildArgs: template.buildArgs,
      labels: { ...templateLabels(template), ...options.labels },
      context: () => contextOf(template, fetched?.folder),
    });
  } finally {
    await fetched?.remove();
  }
}

/** A stream: an agent has hundreds of megabytes. Dates and owners are fixed, because the builder's cache looks at them. */
function contextOf(template: Template, npmFolder: string | undefined): Readable {
  const fixed = { mtime: new Date(0), uid: 0, gid: 0 };
  const files = template.files.map(
    ({ name, content }): TarSource => ({ type: 'content', target: name, content, mode: 0o644, ...fixed }),
  );
  const folders: readonly TarSource[] =
    npmFolder === undefined ? [] : [{ type: 'directory', source: npmFolder, target: 'npm', ...fixed }];
  return packFolder([...files, ...folders], {
    filter: isForTheImage,
    // Whoever runs this may have an umask that keeps others out.
    map: (header) => ({ ...header, mode: readableByAll(header.mode ?? 0o644), uname: '', gname: '' }),
  });
}

const readableByAll = (mode: number): number => 0o644 | ((mode & 0o111) === 0 ? 0 : 0o111);

async function mark(
  engine: ImageEngine,
  built: string,
  template: Template,
  { repository, tag, labels }: TaggedAs,
): Promise<string> {
  const draft = await engine.openDraft({
    image: built,
    name: `${repository}-${tag}-marking`,
    kind: `image-${template.kind}`,
    labels: { [label.inputs]: template.inputs, ...templateLabels(template), ...labels },
  });
  try {
    const header = {
      name: provisionMarker.slice(1),
      type: 'file' as const,
      size: 0,
      mode: 0o644,
      uid: 0,
      gid: 0,
      mtime: new Date(0),
    };
    const archive = Buffer.from(await packTar([{ header, body: Buffer.alloc(0) }]));
    await draft.write(Readable.from([archive], { objectMode: false }));
    await draft.commit(repository, tag);
  } finally {
    await draft.discard();
  }
  const facts = await engine.find(`${repository}:${tag}`);
  if (facts !== undefined) return facts.id;
  throw new SallyportError('image_missing', `${repository}:${tag} was made and is not on this engine`, {
    advice: 'Somebody may have removed it; try again.',
  });
}
