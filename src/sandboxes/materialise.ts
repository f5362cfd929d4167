/**
 * From a record to a box that runs and answers: image, user, porter, container, start, greeting. A failure undoes what was made,
 * in reverse; a crash is undone by the next start, because the container carries the sandbox's id from its first moment.
 */

import type { BoxPlan } from '../policy/box-plan.ts';
import { plannedBox } from '../policy/box-plan.ts';
import type { PlannedCopy } from '../policy/copy-sources.ts';
import type { Stub } from '../policy/held-paths.ts';
import { imagePlaces } from '../policy/image-places.ts';
import type { BoxRequest } from '../protocol/box.ts';
import { defaultImage } from '../protocol/default-image.ts';
import { strongestRuntime } from '../protocol/isolation-level.ts';
import { label, ownedLabels } from '../protocol/labels.ts';
import type { BoxLink } from './box-link.ts';
import { type BoxServices, networkOf } from './box-services.ts';
import { chooseRuntime } from './choose-runtime.ts';
import { putCopy } from './copy-in.ts';
import { diskNote } from './disk-note.ts';
import { touchWorktree } from './git-worktree-look.ts';
import { makeShadows, provideShadows } from './make-shadows.ts';
import { PinnedSources } from './pinned-sources.ts';
import type { BoxHome, ImageChoice, PreparedClone } from './ports.ts';
import type { SandboxRecord } from './records.ts';
import type { RuntimeChecks } from './runtime-checks.ts';
import { Saga } from './saga.ts';
import { diskLimitOf } from './sandbox-disk.ts';
import { specLabel } from './spec-label.ts';
import { makeStubs, type StubTurns } from './stubs.ts';
import { requireInForce } from './verify.ts';
import { copyWorkspace, workspaceCopy } from './workspace-copy.ts';
import type { SandboxWorld, Tell } from './world.ts';

export interface Materialisation {
  readonly record: () => SandboxRecord;
  /** News of the record, safe when it returns. */
  readonly note: (news: Partial<SandboxRecord>) => void;
  readonly linkTo: (boxId: string) => BoxLink;
  readonly stubs: StubTurns;
  readonly services: BoxServices;
  readonly runtimes: RuntimeChecks;
  readonly tell: Tell;
  readonly requireDisk: () => Promise<void>;
  readonly signal: AbortSignal;
  /** Waited for before anything runs inside. */
  readonly beforeStart?: Promise<void>;
}

export async function materialise(world: SandboxWorld, work: Materialisation): Promise<BoxLink> {
  const saga = new Saga();
  const { name } = work.record();
  // First of all: a repository that cannot be cloned is found out before anything is made.
  const clone = await prepareClone(world, work);
  try {
    return await make(world, work, saga, clone);
  } catch (error) {
    await saga.undo((what, failure) => world.report(`undo ${what} of ${name}`, failure));
    throw error;
  } finally {
    await clone?.remove().catch((failure: unknown) => world.report(`remove the clone of ${name}`, failure));
  }
}

async function prepareClone(
  { clones, store, checkpoint }: SandboxWorld,
  { record, signal }: Materialisation,
): Promise<PreparedClone | undefined> {
  const { id, plan } = record();
  const { source: repository, branch } = workspaceCopy(plan) ?? {};
  if (repository === undefined || branch === undefined) return undefined;
  const clone = await clones.make({ repository, branch, signal });
  for (const note of clone.notes) store.events.append({ type: 'sandbox.note', sandbox_id: id, ...note });
  checkpoint('create.cloned');
  return clone;
}

async function make(
  world: SandboxWorld,
  work: Materialisation,
  saga: Saga,
  clone: PreparedClone | undefined,
): Promise<BoxLink> {
  const { engine, images, checkpoint } = world;
  const { signal, note, tell } = work;
  const { plan, isolation, cleanUp } = work.record();
  const image = await images.provide(imageChoice(work.record()), {
    progress: tell,
    signal,
    note: (code, message) =>
      world.store.events.append({ type: 'sandbox.note', sandbox_id: work.record().id, code, message }),
  });
  signal.throwIfAborted();
  note({ image: image.reference, imageId: image.id, imageEnv: image.env });
  checkpoint('create.image');
  const personal = await images.forUser(image, homeOf(plan, isolation.engine), signal);
  checkpoint('create.user-image');
  const porterVolume = await engine.providePorter(personal, signal);
  signal.throwIfAborted();
  checkpoint('create.porter');
  await chooseRuntime(world, work, { image: personal, porterVolume });
  const { services } = work;
  await services.provideNetwork(saga);
  await makeShadows(world, work);
  if (cleanUp === undefined) await services.provideContainers(tell);
  signal.throwIfAborted();
  // An engine looks for the sources when it makes the box, and again when it starts it.
  await provideStubs(world, work);
  // Not cancelled half-way: a create whose answer is not awaited would leave a box that nobody knows.
  const request = boxOf(work.record(), world.owner, { image: personal, porterVolume });
  const boxId = await engine.create(request, undefined, diskNote(world, work.record()));
  saga.onFailure('the container', () => engine.remove(boxId));
  checkpoint('create.container');
  note({ containerId: boxId, isFilled: false });
  signal.throwIfAborted();
  checkpoint('create.recorded');
  if (cleanUp === undefined) {
    services.startOptional();
    await services.startRequired();
  }
  await work.beforeStart;
  const link = await startMade(world, work, saga);
  for (const copy of plan.copies) {
    if (copy.isWorkspace) await copyIn(world, work, link, { ...copy, source: clone?.folder ?? copy.source });
    else await putCopy((await link.porter()).files, copy, { tell, signal });
  }
  if (plan.copies.length > 0) {
    await work.requireDisk();
    checkpoint('create.copied');
  }
  if (cleanUp === undefined) await services.welcome(await link.porter());
  return link;
}

/** What was built for it once stays its image: the workspace may say something else by now, which nobody approved. */
function imageChoice({ spec, image, imageId, approvedDockerfile }: SandboxRecord): ImageChoice {
  const { image: named, workspace, build, agent } = spec;
  const built =
    approvedDockerfile === undefined || imageId === undefined ? undefined : { reference: image, id: imageId };
  const fallback = defaultImage(spec);
  return { image: named, workspace: workspace?.path, approvedDockerfile, build, built, agent, fallback };
}

async function copyIn(
  { store }: SandboxWorld,
  { record, tell, signal }: Materialisation,
  link: BoxLink,
  folder: PlannedCopy,
): Promise<void> {
  const { id } = record();
  const { files } = await link.porter();
  const skipped = (path: string): void => {
    const message = `${path} was left out: it is neither a file, a folder nor a link`;
    store.events.append({ type: 'sandbox.note', sandbox_id: id, code: 'workspace_skipped', message });
  };
  const pack = await store.openBaseline(id);
  const copied = copyWorkspace(files, folder, { tell, skipped, signal, pack });
  // The content is in its file before the manifest says where.
  const manifest = await copied.finally(() => pack.close());
  await store.saveManifest(id, manifest);
}

/** From a container that does not run to a porter that answers, in a box that is as it was asked for. */
export async function startBox(
  world: SandboxWorld,
  work: Pick<Materialisation, 'record' | 'note' | 'linkTo' | 'stubs' | 'services' | 'tell' | 'signal'>,
): Promise<BoxLink> {
  const { services } = work;
  await provideShadows(world, work);
  await provideStubs(world, work);
  await services.provideNetwork(new Saga());
  if (work.record().cleanUp !== undefined) return await startMade(world, work, new Saga());
  await services.provideContainers(work.tell);
  services.startOptional();
  await services.startRequired();
  const link = await startMade(world, work, new Saga());
  try {
    await services.welcome(await link.porter());
  } catch (error) {
    link.close();
    throw error;
  }
  return link;
}

async function startMade(
  world: SandboxWorld,
  work: Pick<Materialisation, 'record' | 'note' | 'linkTo' | 'signal'>,
  saga: Saga,
): Promise<BoxLink> {
  const { checkpoint } = world;
  const { containerId } = work.record();
  if (containerId === undefined) throw new Error('a container is started that was never made');
  const { mounts, covered = [] } = work.record().plan;
  const sources = await PinnedSources.pin(mounts, covered);
  try {
    checkpoint('create.pinned');
    const link = await startPinned(world, work, { containerId, sources, saga });
    if (mounts.length > 0) work.note({ sources: sources.identities });
    checkpoint('create.greeted');
    return link;
  } finally {
    await sources.close();
  }
}

/** Whoever calls takes them away again if the start fails. */
async function provideStubs(
  { store, checkpoint }: SandboxWorld,
  { record, note, stubs }: Pick<Materialisation, 'record' | 'note' | 'stubs'>,
): Promise<void> {
  const { worktreeDir } = record().plan;
  if (worktreeDir !== undefined) await touchWorktree(worktreeDir);
  const made = await makeStubs(record(), stubs, (needed) => note({ stubs: needed }));
  checkpoint('create.stubs');
  const say = (code: string, message: string): void =>
    void store.events.append({ type: 'sandbox.note', sandbox_id: record().id, code, message });
  const { toolFolders = [] } = record().plan;
  const isIn = ({ path }: Stub, folder: string): boolean => path.startsWith(`${folder}/`);
  for (const { source } of toolFolders) {
    const count = made.filter((stub) => isIn(stub, source)).length;
    if (count > 0) say('tool_placeholders', placeholdersMessage(source, count));
  }
  const others = made.filter((stub) => !toolFolders.some(({ source }) => isIn(stub, source)));
  if (others.length === 0) return;
  const list = others.map(({ path }) => path).join(', ');
  say(
    'workspace_stubs',
    `put into the workspace until the sandbox stops, so that nothing can be planted there: ${list}`,
  );
}

/** Without their names, which are many and always the same. */
const placeholdersMessage = (folder: string, count: number): string =>
  `${count} empty placeholders are in ${folder} until the sandbox stops, so that nothing can be planted there`;

interface Pinned {
  readonly containerId: string;
  readonly sources: PinnedSources;
  readonly saga: Saga;
}

async function startPinned(
  world: SandboxWorld,
  work: Pick<Materialisation, 'record' | 'linkTo' | 'signal'>,
  { containerId, sources, saga }: Pinned,
): Promise<BoxLink> {
  const { engine, checkpoint } = world;
  const link = work.linkTo(containerId);
  saga.onFailure('the connection', async () => link.close());
  // Before the start: what porter says first must not be missed.
  const door = await engine.tryAttach(containerId, work.signal);
  let isStarted = false;
  try {
    await engine.start(containerId, work.signal);
    isStarted = true;
    checkpoint('create.started');
    if (door === undefined) await link.reach(work.signal);
    else await link.greet(door, work.signal);
    const { id } = work.record();
    const isLocal = async (): Promise<boolean> => (await engine.facts()).endpoint.startsWith('unix:');
    for (const note of await requireInForce(await link.porter(), work.record(), sources, isLocal)) {
      world.store.events.append({ type: 'sandbox.note', sandbox_id: id, ...note });
    }
  } catch (error) {
    door?.destroy();
    link.close();
    // A box that is not what was asked for runs no longer than that took to find out.
    if (isStarted)
      await engine.stop(containerId, 0).catch((failure: unknown) => world.report('stop a box', failure));
    throw error;
  }
  return link;
}

/** What the image of a box must have for it. Podman takes no resolver for a box without a network, and leaves the file as the image has it. */
export function homeOf(plan: BoxPlan, engine?: string): BoxHome {
  const places = { ...plan.user, ...imagePlaces(plan) };
  return plan.egress === true && engine === 'podman' ? { ...places, resolver: '127.0.0.1' } : places;
}

/** The box that a record asks for; pure. */
export function boxOf(
  record: SandboxRecord,
  owner: string,
  made: { readonly image: string; readonly porterVolume: string },
): BoxRequest {
  const limits = { ...record.plan.limits, diskBytes: diskLimitOf(record) };
  return plannedBox(
    { ...record.plan, limits },
    {
      ...made,
      name: record.containerName,
      labels: boxLabels(record, owner),
      endsWithHost: false,
      network: networkOf(record),
    },
  );
}

/** Enough to know a sandbox by, and to make its record again if the store is lost (A12). */
function boxLabels(record: SandboxRecord, owner: string): Record<string, string> {
  return ownedLabels('sandbox', {
    [label.owner]: owner,
    [label.id]: record.id,
    [label.name]: record.name,
    [label.spec]: specLabel(record.spec),
    ...runtimeLabel(record),
  });
}

/** What the spec leaves open. */
const runtimeLabel = ({ spec, plan: { runtime } }: SandboxRecord): Record<string, string> =>
  spec.runtime === strongestRuntime && runtime !== undefined ? { [label.runtime]: runtime } : {};
