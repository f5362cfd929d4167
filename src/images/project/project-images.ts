/**
 * A project's own image (O1, R2, R3): found by what it is made from, built when that has changed, and never before somebody approved
 * exactly what is built.
 */

import { dockerfileName } from '../../protocol/dockerfile-name.ts';
import { SallyportError } from '../../protocol/errors.ts';
import { label } from '../../protocol/labels.ts';
import type { ImageEngine, ProvidedImage, ProvideOptions } from '../../sandboxes/ports.ts';
import { type ChangedInputs, changedInputs, fingerprint, type ImageInput } from '../inputs.ts';
import type { BuildRecord, BuildTurns, ImageRecords } from '../ports.ts';
import { provisionVersion } from '../provision.ts';
import type { RegistryCredentials } from '../registry-credentials.ts';
import { lookAtBases, provideBases } from './bases.ts';
import { buildProject } from './build-project.ts';
import { type ProjectRequest, type ProjectSource, readProjectSource } from './project-source.ts';
import { SharedWork } from './shared-work.ts';

export interface ProjectImagesDeps {
  readonly engine: ImageEngine;
  readonly records: ImageRecords;
  readonly turns: BuildTurns;
  readonly credentials: RegistryCredentials;
  /** Of the porter protocol. */
  readonly porterVersion: string;
  readonly now: () => Date;
  /** Besides those that every image of ours has. */
  readonly labels?: Readonly<Record<string, string>>;
  readonly largeContextBytes?: number;
}

export interface ResolveRequest extends ProjectRequest {
  /** The `approval` of what was shown to a person. */
  readonly approved?: string | undefined;
  /** Asks for the bases again and builds every step anew. */
  readonly rebuild?: boolean;
}

export interface ResolvedImage extends ProvidedImage {
  readonly fingerprint: string;
  readonly how: 'present' | 'built';
  readonly durationMs: number;
}

export interface Why extends ChangedInputs {
  readonly folder: string;
  /** The name that the image has or would have. */
  readonly reference: string;
  readonly isThere: boolean;
  /** Undefined: nothing was built of this folder yet. */
  readonly lastBuild?: BuildRecord;
}

export class ProjectImages {
  readonly #deps: ProjectImagesDeps;
  readonly #builds = new SharedWork<string>();
  #platform: string | undefined;

  constructor(deps: ProjectImagesDeps) {
    this.#deps = deps;
  }

  /** What is there to be built, without building anything. Undefined: no Dockerfile of ours. */
  async look(request: ProjectRequest, signal?: AbortSignal): Promise<ProjectSource | undefined> {
    return await readProjectSource(request, this.#deps.records, signal);
  }

  /** Undefined: no Dockerfile of ours. */
  async resolve(request: ResolveRequest, options: ProvideOptions): Promise<ResolvedImage | undefined> {
    const beganMs = performance.now();
    const source = await this.look(request, options.signal);
    if (source === undefined) return undefined;
    requireApproved(source, request.approved);
    const rebuild = request.rebuild === true;
    const bases = await provideBases(source.dockerfile.bases, {
      ...this.#deps,
      progress: options.progress,
      ...(options.signal === undefined ? {} : { signal: options.signal }),
      refresh: rebuild,
      note: options.note ?? (() => {}),
    });
    const inputs = await this.#inputs(source, bases);
    const named = nameOf(source, fingerprint(inputs));
    const found = rebuild ? undefined : await this.#find(named);
    const made = found ?? (await this.#build(source, { inputs, bases, named, rebuild }, options));
    const durationMs = Math.round(performance.now() - beganMs);
    const how = found === undefined ? 'built' : 'present';
    this.#remember(source, { inputs, named, id: made.id, ...(how === 'built' ? { durationMs } : {}) });
    return { ...made, fingerprint: named.fingerprint, how, durationMs };
  }

  /** Which inputs are other than those of the last build. No registry is asked. Undefined: no Dockerfile of ours. */
  async why(request: ProjectRequest, signal?: AbortSignal): Promise<Why | undefined> {
    const source = await this.look(request, signal);
    if (source === undefined) return undefined;
    const { engine, records } = this.#deps;
    const inputs = await this.#inputs(source, await lookAtBases(engine, source.dockerfile.bases));
    const named = nameOf(source, fingerprint(inputs));
    const lastBuild = records.findBuild(source.folder);
    return {
      folder: source.folder,
      reference: named.reference,
      isThere: (await this.#find(named)) !== undefined,
      ...changedInputs(lastBuild?.inputs ?? [], inputs),
      ...(lastBuild === undefined ? {} : { lastBuild }),
    };
  }

  async #inputs(source: ProjectSource, bases: readonly ImageInput[]): Promise<readonly ImageInput[]> {
    const { porterVersion } = this.#deps;
    return [
      ...source.inputs,
      ...bases,
      { name: 'platform', digest: `linux/${await this.#architecture()}` },
      { name: 'provision', digest: String(provisionVersion) },
      { name: 'porter', digest: porterVersion },
    ];
  }

  /** Of the engine; it stays what it is. */
  async #architecture(): Promise<string> {
    this.#platform ??= await this.#deps.engine.architecture();
    return this.#platform;
  }

  async #find({ reference, fingerprint: wanted }: Named): Promise<ProvidedImage | undefined> {
    const facts = await this.#deps.engine.find(reference);
    if (facts?.labels[label.inputs] !== wanted) return undefined;
    return { reference, id: facts.id, env: facts.env };
  }

  async #build(
    source: ProjectSource,
    { inputs, bases, named, rebuild }: Planned,
    { progress, signal }: ProvideOptions,
  ): Promise<ProvidedImage> {
    const waiter = { progress, ...(signal === undefined ? {} : { signal }) };
    await this.#builds.join(named.reference, waiter, async (tell, abort) => {
      const { engine, records, turns, labels = {}, largeContextBytes } = this.#deps;
      const leave = await turns.take(`sallyport-build-${named.tag}`, abort);
      try {
        // Another process may have built it while this one waited for its turn.
        const meanwhile = rebuild ? undefined : await this.#find(named);
        if (meanwhile !== undefined) return meanwhile.id;
        const log = records.openLog(source.folder);
        const { repository, tag } = named;
        return await buildProject(
          { source, fingerprint: fingerprint(inputs), repository, tag, noCache: rebuild, labels },
          {
            engine,
            log,
            progress: tell,
            signal: abort,
            requireSameBases: () => requireSame(engine, source, bases),
            ...(largeContextBytes === undefined ? {} : { largeContextBytes }),
          },
        );
      } finally {
        await leave();
      }
    });
    const made = await this.#find(named);
    if (made !== undefined) return made;
    throw new SallyportError('image_missing', `${named.reference} was built and is not on this engine`, {
      details: { image: named.reference },
      advice: 'Somebody may have removed it; try again.',
    });
  }

  #remember(
    { folder }: ProjectSource,
    {
      inputs,
      named,
      id,
      durationMs,
    }: Pick<Planned, 'inputs' | 'named'> & { id: string; durationMs?: number },
  ): void {
    const { records, now } = this.#deps;
    const before = records.findBuild(folder);
    if (before?.fingerprint === named.fingerprint && before.imageId === id) return;
    records.saveBuild({
      folder,
      reference: named.reference,
      imageId: id,
      fingerprint: named.fingerprint,
      inputs,
      builtAt: now().toISOString(),
      ...(durationMs === undefined ? {} : { durationMs }),
    });
  }
}

interface Named {
  readonly fingerprint: string;
  readonly repository: string;
  readonly tag: string;
  readonly reference: string;
}

interface Planned {
  readonly inputs: readonly ImageInput[];
  readonly bases: readonly ImageInput[];
  readonly named: Named;
  readonly rebuild: boolean;
}

function nameOf({ name }: ProjectSource, print: string): Named {
  const repository = `sallyport-${name}`;
  const tag = print.slice(0, 12);
  return { fingerprint: print, repository, tag, reference: `${repository}:${tag}` };
}

function requireApproved({ folder, approval }: ProjectSource, approved: string | undefined): void {
  if (approved === approval) return;
  const file = `${folder}/${dockerfileName}`;
  const what =
    approved === undefined
      ? `${file} is to be built, and nobody has approved that`
      : `${file}, or a file that it copies, changed after it was approved`;
  throw new SallyportError('project_not_approved', what, {
    details: { file, fingerprint: approval },
    advice:
      'Read it, then approve it: run in a terminal, pass `--approve`, set SALLYPORT_APPROVE_PROJECT=1, or give `approveDockerfile` in a program.',
  });
}

/** A tag may have been moved while the builder worked; then the image is not what its name says. */
async function requireSame(
  engine: ImageEngine,
  { dockerfile, folder }: ProjectSource,
  before: readonly ImageInput[],
): Promise<void> {
  const { added, removed, changed } = changedInputs(before, await lookAtBases(engine, dockerfile.bases));
  const [moved] = [...changed, ...added, ...removed];
  if (moved === undefined) return;
  const image = moved.slice('base:'.length);
  throw new SallyportError('copy_changed', `${image} was replaced while ${folder} was built on it`, {
    details: { image },
    advice: 'Try again.',
  });
}
