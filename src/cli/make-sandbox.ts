/**
 * Makes a sandbox and says what takes long meanwhile. Where the base image is missing it is made first, with consent, in
 * this process: the daemon installs nothing.
 */

import { lstatSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { defaultImage } from '../protocol/default-image.ts';
import { dockerfileName } from '../protocol/dockerfile-name.ts';
import { isSallyportError } from '../protocol/errors.ts';
import { strongestRuntime } from '../protocol/isolation-level.ts';
import type { CreateInput } from '../protocol/requests.ts';
import type { SandboxView } from '../protocol/views.ts';
import { followEvents } from '../sdk/events.ts';
import { readCliEnvironment } from './config.ts';
import type { CliContext } from './context.ts';
import { note } from './output.ts';
import { type ProgressLine, progressLine } from './progress-line.ts';
import type { SandboxCalls } from './sandbox-calls.ts';

/** Quicker than that is no long work. */
const patienceMs = 400;

export async function makeSandbox(
  calls: SandboxCalls,
  given: CreateInput,
  context: CliContext,
  options: {
    readonly approve?: boolean /** Others write to the terminal meanwhile. */;
    readonly quiet?: true;
    /** False: where only a weaker engine is here, the caller decides. */
    readonly asksEngine?: false;
  } = {},
): Promise<SandboxView> {
  const withEngine = options.asksEngine === false ? withoutAsking : withChosenEngine;
  const body = await withEngine(context, () => withApproval(calls, given, options, context));
  if (options.quiet === true) return await create(calls, body, undefined, context);
  const line = progressLine();
  const accepted: AcceptedId = {};
  try {
    const made = await withEngine(context, () => create(calls, body, line, context, accepted));
    if (isNamed(body)) noteWeaker(made);
    return made;
  } catch (error) {
    if (!isSallyportError(error, 'image_missing') || isImageNamed(body)) throw error;
    await makeImage(body.spec?.agent, line, context);
    // The one that failed for the lack of it holds the name, unless it goes by itself.
    return (await made(calls, accepted.id, context)) ?? (await create(calls, body, line, context));
  } finally {
    line.done();
  }
}

/** The sandbox does not need the base image. */
function isImageNamed({ spec = {} }: CreateInput): boolean {
  if (spec.image !== undefined) return true;
  // A Dockerfile takes precedence over the default, and may be built on the base image.
  const isBuilt = spec.workspace !== undefined && hasDockerfile(spec.workspace.path);
  return !isBuilt && defaultImage(spec) !== undefined;
}

const isNamed = ({ spec }: CreateInput): boolean => spec?.engine !== undefined && spec.engine !== 'auto';

/** Who names an engine that isolates less is told what it lacks. */
function noteWeaker({ isolation: { engine, weaker = [] } }: SandboxView): void {
  if (weaker.length === 0) return;
  note(`${engine} isolates less than a container engine:`);
  for (const each of weaker) note(`  ${each}`);
}

/** Of the sandbox of the last attempt. */
interface AcceptedId {
  id?: string;
}

/** What failed is made now. Undefined: it is not there any more. */
async function made(
  calls: SandboxCalls,
  id: string | undefined,
  { signal }: CliContext,
): Promise<SandboxView | undefined> {
  if (id === undefined) return undefined;
  try {
    const ready = await calls.change(id, 'ensure', {}, { signal });
    await showNotes(calls, ready);
    return ready;
  } catch (error) {
    if (isSallyportError(error, 'sandbox_not_found')) return undefined;
    throw error;
  }
}

/** Where only a weaker engine is here, the user may choose it, once. */
const withoutAsking = async <T>(_context: CliContext, work: () => Promise<T>): Promise<T> => await work();

async function withChosenEngine<T>(context: CliContext, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!isSallyportError(error, 'engine_not_chosen')) throw error;
    const { chooseWeakerEngine } = await import('./choose-engine.ts');
    if (!(await chooseWeakerEngine(error, context))) throw error;
    return await work();
  }
}

export function hasDockerfile(folder: string): boolean {
  return lstatSync(join(folder, dockerfileName), { throwIfNoEntry: false }) !== undefined;
}

/** A workspace with a Dockerfile of ours: what it asks for is approved before anything is made. */
async function withApproval(
  calls: SandboxCalls,
  body: CreateInput,
  options: { readonly approve?: boolean },
  context: CliContext,
): Promise<CreateInput> {
  const { image, workspace, build } = body.spec ?? {};
  if (image !== undefined || workspace === undefined) return body;
  if (!hasDockerfile(workspace.path)) return body;
  const { approveDockerfile } = await import('./approve-dockerfile.ts');
  const project = { folder: resolve(workspace.path), ...(build === undefined ? {} : { build }) };
  const approved = await approveDockerfile(calls.client, project, options.approve === true, context);
  return approved === undefined ? body : { ...body, approved_dockerfile: approved };
}

async function create(
  calls: SandboxCalls,
  body: CreateInput,
  line: ProgressLine | undefined,
  { signal }: CliContext,
  tell: AcceptedId = {},
): Promise<SandboxView> {
  const accepted = await calls.create(body, { signal });
  const { id } = accepted;
  tell.id = id;
  const watching = new AbortController();
  const timer =
    line === undefined
      ? undefined
      : setTimeout(() => void follow(calls, id, line, watching.signal), patienceMs);
  try {
    const ready = accepted.state === 'READY' ? accepted : await calls.ready(id, { signal });
    if (line !== undefined && mayHaveNotes(body)) await showNotes(calls, ready);
    return ready;
  } catch (error) {
    // Whoever gave up does not want it any more; one that was there before stays.
    if (signal.aborted && body.reuse !== true) await calls.remove(id, { force: true, wait: false });
    throw error;
  } finally {
    clearTimeout(timer);
    watching.abort();
  }
}

async function follow(
  calls: SandboxCalls,
  sandbox: string,
  line: ProgressLine,
  signal: AbortSignal,
): Promise<void> {
  try {
    for await (const event of followEvents(calls.client, { sandbox, since: 0, signal })) {
      if (event.type !== 'sandbox.progress') continue;
      const { step, message, current } = event;
      line.report({ step, message, ...(current === undefined ? {} : { current }) });
    }
  } catch {
    // Progress is a courtesy: whether the work succeeds is said by its own answer.
  }
}

/** Notes are about what of the host is inside, the user, who is beside it, and a runtime that was left open. */
function mayHaveNotes({ spec = {} }: CreateInput): boolean {
  if (spec.runtime === strongestRuntime) return true;
  const { workspace, mounts, builtin_tools: tools, user, ports } = spec;
  const { required_services: required, optional_services: optional } = spec;
  return [workspace, mounts, tools, user, ports, required, optional].some((field) => field !== undefined);
}

async function showNotes(calls: SandboxCalls, { id, sequence }: SandboxView): Promise<void> {
  const watching = new AbortController();
  for await (const event of followEvents(calls.client, { sandbox: id, since: 0, signal: watching.signal })) {
    if (event.type === 'sandbox.note') note(event.message);
    if (event.sequence >= sequence) watching.abort();
  }
}

/** That of the agent, if it is one of ours; else the base image. */
async function makeImage(agent: string | undefined, line: ProgressLine, context: CliContext): Promise<void> {
  if (agent === undefined) return await makeBaseImage(line, context);
  line.done();
  const { makeTemplateImage } = await import('./made-image.ts');
  await makeTemplateImage(agent, { rebuild: false }, context.signal);
}

async function makeBaseImage(line: ProgressLine, { signal }: CliContext): Promise<void> {
  const [{ makeImageHere }, { askConsent }] = await Promise.all([
    import('../setup/images.ts'),
    import('./ask.ts'),
  ]);
  await makeImageHere('base', {
    progress: line.report,
    consent: async (packages) => {
      line.done();
      const what = `${packages.join(', ')} with apt-get`;
      return await askConsent({ what, agreed: readCliEnvironment().ci }, signal);
    },
    signal,
  });
}
