/**
 * Provisioning on request (G8): a template's image, or the install surface on the image of a sandbox. Nothing becomes the
 * base image of later sandboxes before it has been seen to keep its promises.
 */

import { readEngineEnvironment } from '../engines/docker/config.ts';
import { findEngine } from '../engines/docker/discover.ts';
import { dockerImageEngine } from '../engines/docker/image-engine.ts';
import { buildTemplate } from '../images/build-template.ts';
import { type EnsureImageOptions, ensureImage } from '../images/ensure-image.ts';
import { ensureTemplate } from '../images/ensure-template.ts';
import { ProvisionGate } from '../images/gate.ts';
import { provisionVersion } from '../images/provision.ts';
import { readBaseTemplate, readTemplate, templateNames, templatePlace } from '../images/template.ts';
import { label } from '../protocol/labels.ts';
import type { ImageEngine } from '../sandboxes/ports.ts';
import { readSetupEnvironment } from './config.ts';
import { localDataRoot, sharedMaking } from './images.ts';
import { privateEnginePaths } from './private-engine/paths.ts';

export interface ProvisionOptions
  extends Pick<EnsureImageOptions, 'progress' | 'consent' | 'signal' | 'offline' | 'rebuild'> {
  /** Also what sandboxes get that name no image. */
  readonly asBase: boolean;
}

export interface Provisioned {
  readonly reference: string;
  readonly id: string;
  readonly how: 'present' | 'pulled' | 'bootstrapped' | 'built';
  readonly size_bytes: number;
  readonly duration_ms: number;
  /** The name under which sandboxes get it that name no image. */
  readonly base?: string;
}

const baseRepository = 'sallyport-base';
const baseTag = 'latest';

export function isTemplate(name: string): boolean {
  return name === 'base' || templateNames.some((known) => known === name);
}

/** Whether the image of a template is there, as its files are now. It is not looked at. */
export async function hasTemplateImage(name: string, signal: AbortSignal): Promise<boolean> {
  const { engine } = await engineHere(signal);
  const { repository, tag, inputs } = await readTemplate(
    templatePlace(name),
    await engine.architecture(signal),
  );
  const found = await engine.find(`${repository}:${tag}`, signal);
  return found?.labels[label.inputs] === inputs;
}

/** Makes it if it is missing, looks at it if it is there, and repairs what does not keep its promises. */
export async function provisionTemplate(name: string, options: ProvisionOptions): Promise<Provisioned> {
  const startedMs = performance.now();
  const { engine, dataRoot, shared } = await engineHere(options.signal);
  const ensure = {
    ...options,
    ...shared,
    engine,
    ...(dataRoot === undefined ? {} : { engineDataRoot: dataRoot }),
  };
  const made = await (name === 'base' ? ensureImage('base', ensure) : ensureTemplate(name, ensure));
  // What was just built of a template has been tried already.
  const id = made.how === 'built' ? made.id : await looked(engine, made, options);
  const asBase = options.asBase || name === 'base';
  if (asBase) await engine.tag(id, baseRepository, baseTag);
  return await provisioned(engine, { ...made, id, startedMs, asBase });
}

/** The install surface of the base image in a build on another image, then the gate, then the name. */
export async function provisionImage(
  imageId: string,
  options: Omit<ProvisionOptions, 'asBase' | 'consent'>,
): Promise<Provisioned> {
  const startedMs = performance.now();
  const { engine } = await engineHere(options.signal);
  const template = await readBaseTemplate(await engine.architecture(options.signal));
  const labels = { [label.provisioned]: String(provisionVersion) };
  const as = { repository: baseRepository, tag: baseTag, labels };
  const freshness = options.rebuild === true ? { freshness: new Date().toISOString() } : {};
  const id = await buildTemplate(imageId, template, as, {
    engine,
    progress: options.progress,
    signal: options.signal,
    needsNetwork: true,
    ...freshness,
  });
  const reference = `${baseRepository}:${baseTag}`;
  return await provisioned(engine, { reference, id, how: 'built', startedMs, asBase: true });
}

async function looked(
  engine: ImageEngine,
  { id, reference }: Pick<Provisioned, 'id' | 'reference'>,
  { progress }: Pick<ProvisionOptions, 'progress'>,
): Promise<string> {
  const facts = await engine.find(id);
  const gate = new ProvisionGate({ engine, passed: new Set(), report: () => {} });
  return facts === undefined ? id : await gate.pass(facts, reference, { progress });
}

async function provisioned(
  engine: ImageEngine,
  made: Pick<Provisioned, 'reference' | 'id' | 'how'> & {
    readonly startedMs: number;
    readonly asBase: boolean;
  },
): Promise<Provisioned> {
  const { reference, id, how, startedMs, asBase } = made;
  const facts = await engine.find(id);
  return {
    reference,
    id,
    how,
    size_bytes: facts?.sizeBytes ?? 0,
    duration_ms: Math.round(performance.now() - startedMs),
    ...(asBase ? { base: `${baseRepository}:${baseTag}` } : {}),
  };
}

async function engineHere(signal: AbortSignal | undefined) {
  const environment = readEngineEnvironment();
  const { connection } = await findEngine(environment, {
    privateSocket: privateEnginePaths(readSetupEnvironment()).socket,
    ...(signal === undefined ? {} : { signal }),
  });
  return {
    engine: dockerImageEngine(connection),
    dataRoot: await localDataRoot(connection),
    shared: sharedMaking(connection, environment),
  };
}
