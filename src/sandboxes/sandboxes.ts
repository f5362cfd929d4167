/** All sandboxes of one owner: makes them, finds them, and makes what is remembered true again after a crash. */

import { randomBytes } from 'node:crypto';
import { Serial } from '../lib/serial.ts';
import { Slots } from '../lib/slots.ts';
import { type BoxPlan, type PlanFacts, placeShadows, planBox } from '../policy/box-plan.ts';
import { type DiskTimes, usualDiskTimes } from '../policy/disk-limit.ts';
import { requireSupported } from '../policy/engine-support.ts';
import type { HostPlaces } from '../policy/forbidden-sources.ts';
import { randomName, workspaceName } from '../policy/names.ts';
import { requireServices, wantedServices } from '../policy/services.ts';
import { expectedRuntime, leaveRuntimeOpen, planOn, runtimeChoice } from '../policy/strongest-runtime.ts';
import type { BoxRequest } from '../protocol/box.ts';
import { defaultImage } from '../protocol/default-image.ts';
import { SallyportError } from '../protocol/errors.ts';
import { type ExecId, isSandboxId, type SandboxId, sandboxIdFrom } from '../protocol/ids.ts';
import { strongestRuntime } from '../protocol/isolation-level.ts';
import { label } from '../protocol/labels.ts';
import { parseSpec } from '../protocol/parse-spec.ts';
import type { CreateBody } from '../protocol/requests.ts';
import type { Spec } from '../protocol/spec.ts';
import { differsInDisk, fixedDifferences } from './adopt-spec.ts';
import { type BoundPort, bindPorts } from './bound-port.ts';
import { requireCopyable } from './copy-in.ts';
import { DiskWatch } from './disk-watch.ts';
import { EngineWatch } from './engine-watch.ts';
import { type Looked, lookAtSpec } from './look-at-spec.ts';
import { requireShadowsFit } from './make-shadows.ts';
import { boxOf, homeOf } from './materialise.ts';
import type { BoxHome, EngineFacts, EventLog, KnownBox } from './ports.ts';
import { type PrunedThing, type PruneOptions, pruneAll } from './prune.ts';
import { requireKnownAgent } from './prune-agent.ts';
import type { SandboxRecord } from './records.ts';
import { retentionCheckMs, retentionReason } from './retention.ts';
import { RuntimeChecks } from './runtime-checks.ts';
import { Sandbox } from './sandbox.ts';
import { foundServices, sweepOrphans } from './service-orphans.ts';
import type { StubTurns } from './stubs.ts';
import { freeUid } from './uid-pool.ts';
import { workspaceCopy } from './workspace-copy.ts';
import type { SandboxWorld } from './world.ts';

export interface SandboxesOptions {
  readonly host: PlanFacts['host'];
  readonly places: HostPlaces;
  /** The user's, where the folders of built-in tools are. */
  readonly home: string;
  /** Names of the agents that have a definition now. */
  readonly definedAgents: () => readonly string[];
  /** Intervals of the disk watch; absent: the usual ones. */
  readonly diskTimes?: DiskTimes;
}

/** An engine starts so many relays at a time without making all of them slow. */
const connectingAtOnce = 16;
/** A helper is started right after it was made; one that was not by then never will be. */
const staleHelperMs = 10 * 60_000;
/** What an engine is does not change while it runs; this is about one that was replaced behind its socket. */
const factsFreshMs = 10_000;

/** The image's name before it is known: the default one is chosen when it is needed. */
const baseImage = 'base';

export interface ExplainedBox {
  readonly box: BoxRequest;
  readonly home: BoxHome;
  /** Remarks for the caller. */
  readonly notes: readonly string[];
}

interface Planned {
  readonly name: string;
  readonly plan: BoxPlan;
}

export class Sandboxes {
  readonly #world: SandboxWorld;
  readonly #options: SandboxesOptions;
  readonly #sandboxes = new Map<SandboxId, Sandbox>();
  /** Names that are taken, also by what is not accepted yet. */
  readonly #names = new Map<string, Sandbox | undefined>();
  readonly #watch: EngineWatch;
  readonly #disk: DiskWatch;
  readonly #runtimes: RuntimeChecks;
  readonly #stubs: StubTurns = {
    turns: new Serial(),
    neededByOthers: (id, path) =>
      this.list().some(({ record }) => record.id !== id && record.stubs?.some((stub) => stub.path === path)),
    boundPaths: (stopped) => this.#world.engine.boundPaths(stopped),
  };
  #retention: NodeJS.Timeout | undefined;
  #facts: { readonly value: EngineFacts; readonly atMs: number } | undefined;
  #closed = false;

  constructor(world: SandboxWorld, options: SandboxesOptions) {
    this.#world = world;
    this.#options = options;
    this.#disk = new DiskWatch({
      engine: world.engine,
      times: options.diskTimes ?? usualDiskTimes,
      sandboxes: () => this.list().map((sandbox) => sandbox.watched),
      report: world.report,
    });
    this.#runtimes = new RuntimeChecks(world);
    this.#watch = new EngineWatch(world, {
      event: (event) => this.#byContainer(event.boxId)?.onEngineEvent(event),
      back: () => {
        this.#facts = undefined;
        return this.#reconcileAll('the engine was away');
      },
    });
  }

  get events(): EventLog {
    return this.#world.store.events;
  }

  async engineReachable(): Promise<boolean> {
    return await this.#watch.isReachable();
  }

  list(): readonly Sandbox[] {
    return [...this.#sandboxes.values()];
  }

  get(reference: string): Sandbox {
    const named = this.#names.get(reference);
    if (named !== undefined) return named;
    const found = this.list().filter(
      ({ id }) => id === reference || (reference.length > 4 && id.startsWith(reference)),
    );
    const [only] = found;
    if (only !== undefined && found.length === 1) return only;
    const what = found.length > 1 ? 'several sandboxes match' : 'there is no sandbox';
    throw new SallyportError('sandbox_not_found', `${what} ${JSON.stringify(reference)}`, {
      details: { sandbox: reference },
    });
  }

  /** The store has let go of an old one. */
  forgetExec(sandbox: SandboxId, exec: ExecId): void {
    this.#sandboxes.get(sandbox)?.forgetExec(exec);
  }

  /**
   * Brings back what was there, then follows the engine. Called once, before anything else. Resolves when every state is
   * true; `recovered` when all that run are connected to as well.
   */
  async recover(): Promise<void> {
    const { store, engine, owner } = this.#world;
    for (const record of await store.load()) {
      this.#keep(new Sandbox(this.#world, this.#parts(record, await store.loadExecs(record.id))));
    }
    await this.#watch.start();
    if (this.#watch.reachable) {
      const [boxes] = await Promise.all([engine.list(owner), this.#sweep()]);
      await this.#adopt(boxes);
      await sweepOrphans(this.#world, (id) => this.list().some((sandbox) => sandbox.id === id));
      const slots = new Slots(connectingAtOnce);
      await Promise.all(this.list().map((sandbox) => sandbox.recover(slots)));
    }
    this.#retention = setInterval(() => void this.#retain(), retentionCheckMs);
    this.#retention.unref();
    await this.#retain();
  }

  async recovered(): Promise<void> {
    await Promise.all(this.list().map((sandbox) => sandbox.recovered));
  }

  /** `signal` ends what is looked at on the host first. A sandbox that was accepted is made. */
  async create(body: CreateBody, signal?: AbortSignal): Promise<Sandbox> {
    this.#requireOpen();
    const { spec } = body;
    const facts = await this.#engineFacts(spec.runtime);
    requireRuntime(spec.runtime, facts);
    const looked = await this.#lookAt(spec, body.programs, signal);
    // Only what policy allows is looked into.
    const judged = this.#plan(spec, facts, looked);
    if (spec.egress !== undefined) this.#world.gate.check(spec.egress);
    for (const copy of judged.plan.copies) await requireCopyable(copy);
    if (!this.#names.has(judged.name)) await requireShadowsFit(judged.plan.shadows, signal);
    if (!this.#names.has(judged.name)) await this.#requireClonable(judged.plan);
    signal?.throwIfAborted();
    const reusable = spec.ports !== undefined && body.reuse ? this.#names.get(judged.name) : undefined;
    if (reusable !== undefined) return await reused(reusable, spec);
    const isLive = judged.plan.unprotected !== undefined;
    const advice = isLive ? await this.#world.firstLiveNote() : undefined;
    const ports = await bindPorts(spec.ports ?? []);
    try {
      const sandbox = await this.#accept(body, facts, looked, ports);
      if (advice !== undefined)
        this.events.append({ type: 'sandbox.note', sandbox_id: sandbox.id, ...advice });
      return sandbox;
    } catch (error) {
      for (const port of ports) port.close();
      throw error;
    }
  }

  /** Nothing waits until it is written down: name and uid are taken at once. */
  async #accept(
    body: CreateBody,
    facts: EngineFacts,
    looked: Looked,
    ports: readonly BoundPort[],
  ): Promise<Sandbox> {
    const { spec } = body;
    const planned = this.#plan(spec, facts, looked);
    const existing = this.#names.get(planned.name);
    if (existing !== undefined && body.reuse) return await reused(existing, spec);
    if (this.#names.has(planned.name)) throw taken(planned.name);
    const record: SandboxRecord = {
      ...this.#newRecord(body, planned, facts),
      ...(ports.length === 0 ? {} : { ports: ports.map(({ port }) => port) }),
    };
    const { store, checkpoint } = this.#world;
    const event = store.events.append({
      type: 'sandbox.state',
      sandbox_id: record.id,
      name: record.name,
      to: 'PENDING',
    });
    try {
      store.save({ ...record, sequence: event.sequence });
    } catch (error) {
      await this.#neverWas(record);
      throw error;
    }
    checkpoint('create.accepted');
    const sandbox = new Sandbox(this.#world, {
      ...this.#parts({ ...record, sequence: event.sequence }, []),
      ports,
    });
    this.#keep(sandbox);
    sandbox.tellPorts();
    for (const { code, message } of planned.plan.notes) {
      store.events.append({ type: 'sandbox.note', sandbox_id: record.id, code, message });
    }
    void sandbox.make();
    return sandbox;
  }

  async explain(body: CreateBody, signal?: AbortSignal): Promise<ExplainedBox> {
    const facts = await this.#engineFacts(body.spec.runtime);
    requireRuntime(body.spec.runtime, facts);
    const planned = this.#plan(body.spec, facts, await this.#lookAt(body.spec, body.programs, signal));
    const { plan, ...made } = this.#newRecord(body, planned, facts);
    const notes = plan.notes.map(({ message }) => message);
    const provided = { image: made.image, porterVolume: 'sallyport-porter' };
    const explained = (settled: BoxPlan, more: readonly string[] = []): ExplainedBox => ({
      box: boxOf({ ...made, plan: settled }, this.#world.owner, provided),
      home: homeOf(settled),
      notes: [...notes, ...more],
    });
    if (plan.runtimes === undefined) return explained(plan);
    const expected = expectedRuntime(plan.runtimes, (runtime) => this.#runtimes.known(facts, runtime));
    return explained(planOn(plan, expected.runtime), [expected.note]);
  }

  async prune(options: PruneOptions): Promise<readonly PrunedThing[]> {
    if (options.agent !== undefined) {
      const specs = this.list().map(({ record }) => record.spec);
      requireKnownAgent(options.agent, specs, this.#options.definedAgents());
    }
    const isKnown = (id: string): boolean => this.list().some((sandbox) => sandbox.id === id);
    const sandboxes = this.list().filter(({ isElsewhere }) => !isElsewhere);
    return await pruneAll(this.#world, { sandboxes, isKnown }, options);
  }

  async shutdown(keep: boolean): Promise<void> {
    this.#closed = true;
    clearInterval(this.#retention);
    const running = this.list().filter(
      ({ state, isElsewhere }) => !isElsewhere && (state === 'READY' || state === 'PENDING'),
    );
    if (!keep) {
      await Promise.all(
        running.map((sandbox) =>
          endOf(sandbox).catch((error: unknown) => this.#world.report(`stop ${sandbox.name}`, error)),
        ),
      );
    }
    this.#watch.stop();
    this.#disk.close();
    for (const sandbox of this.list()) sandbox.letGo();
  }

  #requireOpen(): void {
    if (!this.#closed) return;
    throw new SallyportError('daemon_stopping', 'the daemon is about to stop');
  }

  /** Asked anew for a runtime that was not there the last time. */
  async #engineFacts(runtime: string | undefined): Promise<EngineFacts> {
    const known = this.#facts;
    const isFresh = known !== undefined && performance.now() - known.atMs < factsFreshMs;
    const isNamed = runtime !== undefined && runtime !== strongestRuntime;
    if (isFresh && (!isNamed || known.value.runtimes.includes(runtime))) return known.value;
    const value = await this.#world.engine.facts();
    this.#facts = { value, atMs: performance.now() };
    return value;
  }

  async #requireClonable(plan: BoxPlan): Promise<void> {
    const { source: repository, branch } = workspaceCopy(plan) ?? {};
    if (repository === undefined || branch === undefined) return;
    await this.#world.clones.check({ repository, branch });
  }

  async #lookAt(spec: Spec, programs: readonly string[] = [], signal?: AbortSignal): Promise<Looked> {
    const placeholders = new Set(
      this.list().flatMap(({ record }) => (record.stubs ?? []).map(({ path }) => path)),
    );
    const known = {
      isPlaceholder: (path: string) => placeholders.has(path),
      programs: [...this.#options.places.programs, ...programs],
    };
    return await lookAtSpec(spec, this.#options.home, known, signal);
  }

  #plan(spec: Spec, engine: EngineFacts, looked: Looked): Planned {
    const choice = runtimeChoice(spec, engine);
    // What holds for the weakest candidate holds for whichever is chosen.
    const asked = choice === undefined ? spec : { ...spec, runtime: choice.weakest };
    requireSupported(asked, engine);
    requireServices(asked, { engine: engine.name, runtime: asked.runtime ?? engine.defaultRuntime });
    const used = new Set(
      this.list()
        .map(({ record }) => record.plan)
        .flatMap(({ user, lender }) => [user.uid, lender?.uid])
        .filter((uid) => uid !== undefined),
    );
    const { host, places } = this.#options;
    const planned = planBox(asked, {
      host,
      places,
      engine,
      freeUid: freeUid(this.#world.owner, used),
      ...looked,
    });
    const plan = choice === undefined ? planned : leaveRuntimeOpen(planned, choice);
    const byWorkspace = looked.workspace === undefined ? undefined : workspaceName(looked.workspace.real);
    return { name: spec.name ?? byWorkspace ?? randomName(randomBytes(4)), plan };
  }

  #newRecord(
    body: CreateBody,
    { name, plan }: Planned,
    engine: EngineFacts,
    id = sandboxIdFrom(randomBytes(10)),
  ): SandboxRecord {
    return {
      id,
      name,
      state: 'PENDING',
      sequence: 0,
      createdAt: this.#world.now(),
      spec: body.spec,
      image: body.spec.image ?? defaultImage(body.spec) ?? baseImage,
      imageEnv: {},
      plan: placeShadows(plan, (mountId) => this.#world.store.shadowFolder(id, mountId)),
      isolation: {
        engine: engine.name,
        engineVersion: engine.version,
        runtime: body.spec.runtime ?? engine.defaultRuntime,
        ...(engine.weaker === undefined ? {} : { weaker: engine.weaker }),
      },
      ephemeral: body.ephemeral,
      detached: body.detached,
      ...(body.approved_dockerfile === undefined ? {} : { approvedDockerfile: body.approved_dockerfile }),
      containerName: `sallyport-${name}-${id.slice(3)}`,
      token: randomBytes(32).toString('hex'),
      epoch: 0,
    };
  }

  /** There was room for the news of it and not for itself. */
  async #neverWas({ id, name }: SandboxRecord): Promise<void> {
    const { store, report } = this.#world;
    try {
      await store.remove(id);
      store.events.append({ type: 'sandbox.state', sandbox_id: id, name, from: 'PENDING', to: 'DELETED' });
    } catch (error) {
      report(`take back ${name}`, error);
    }
  }

  #parts(record: SandboxRecord, execs: Awaited<ReturnType<SandboxWorld['store']['loadExecs']>>) {
    const removed = (sandbox: Sandbox) => this.#drop(sandbox);
    return { record, execs, stubs: this.#stubs, runtimes: this.#runtimes, disk: this.#disk, removed };
  }

  #keep(sandbox: Sandbox): void {
    this.#sandboxes.set(sandbox.id, sandbox);
    this.#names.set(sandbox.name, sandbox);
  }

  #drop(sandbox: Sandbox): void {
    this.#sandboxes.delete(sandbox.id);
    if (this.#names.get(sandbox.name) === sandbox) this.#names.delete(sandbox.name);
  }

  #byContainer(boxId: string): Sandbox | undefined {
    const isMine = ({ containerId, services = [] }: SandboxRecord): boolean =>
      containerId === boxId || services.some((service) => service.containerId === boxId);
    return this.list().find(({ record }) => isMine(record));
  }

  async #reconcileAll(meanwhile?: string): Promise<void> {
    await Promise.all(
      this.list().map((sandbox) =>
        sandbox.reconcile(meanwhile).catch((error: unknown) => {
          this.#world.report(`reconcile ${sandbox.name}`, error);
        }),
      ),
    );
  }

  /** What is left of others' work is in nobody's way: a failure here is no reason not to start. */
  async #sweep(): Promise<void> {
    try {
      await this.#world.engine.sweep(staleHelperMs);
    } catch (error) {
      this.#world.report('sweep what was left unfinished', error);
    }
  }

  /** Boxes of this owner that the store knows nothing of: it was lost, or its daemon died before it wrote. */
  async #adopt(boxes: readonly KnownBox[]): Promise<void> {
    for (const box of boxes) {
      const id = box.labels[label.id];
      if (id === undefined || !isSandboxId(id) || this.#sandboxes.has(id)) continue;
      try {
        await this.#adoptOne(id, box);
      } catch (error) {
        this.#world.report(`adopt ${id}`, error);
      }
    }
  }

  async #adoptOne(id: SandboxId, box: KnownBox): Promise<void> {
    const { engine, store } = this.#world;
    const name = box.labels[label.name] ?? id;
    if (box.status === 'created' || this.#names.has(name)) {
      await engine.remove(box.id);
      return;
    }
    const spec = parseSpec(JSON.parse(box.labels[label.spec] ?? '{}'));
    const facts = await this.#engineFacts(spec.runtime);
    const { plan } = this.#plan(spec, facts, await this.#lookAt(spec));
    const body: CreateBody = { spec, ephemeral: false, detached: false, reuse: false };
    const record: SandboxRecord = {
      ...onItsRuntime(this.#newRecord(body, { name, plan }, facts, id), box),
      containerId: box.id,
      isFilled: true,
      state: 'STOPPED',
      reason: 'its record was lost and made again from its labels',
      createdAt: new Date(box.createdMs).toISOString(),
      ...(wantedServices(spec).length === 0 ? {} : await foundServices(this.#world, id, spec)),
    };
    // The token is lost with the record, so nobody can talk to what runs.
    await engine.stop(box.id, 0);
    const event = store.events.append({
      type: 'sandbox.state',
      sandbox_id: id,
      name,
      to: 'STOPPED',
      reason: record.reason ?? '',
    });
    store.save({ ...record, sequence: event.sequence });
    this.#keep(new Sandbox(this.#world, this.#parts({ ...record, sequence: event.sequence }, [])));
  }

  async #retain(): Promise<void> {
    for (const sandbox of this.list()) {
      const why = retentionReason(sandbox.record, Date.now());
      if (why === undefined || sandbox.isElsewhere) continue;
      await sandbox.remove({ force: false }).catch((error: unknown) => {
        this.#world.report(`remove ${sandbox.name}, ${why}`, error);
      });
    }
  }
}

/** The runtime that its container has, where the spec does not say. */
function onItsRuntime(record: SandboxRecord, { labels }: KnownBox): SandboxRecord {
  const runtime = labels[label.runtime];
  if (record.plan.runtimes === undefined || runtime === undefined) return record;
  return { ...record, plan: planOn(record.plan, runtime), isolation: { ...record.isolation, runtime } };
}

async function endOf(sandbox: Sandbox): Promise<void> {
  if (sandbox.record.ephemeral) await sandbox.remove({ force: true });
  else await sandbox.stop(5000);
}

/** Asked before anything is made: a box that fell back to another runtime would have another isolation. */
function requireRuntime(runtime: string | undefined, { runtimes }: EngineFacts): void {
  if (runtime === undefined || runtime === strongestRuntime || runtimes.includes(runtime)) return;
  throw new SallyportError('runtime_missing', `the engine has no runtime ${JSON.stringify(runtime)}`, {
    details: { runtime, available: [...runtimes] },
    advice: `It has ${runtimes.join(', ')}; \`sally doctor\` says more.`,
  });
}

/** R4: rules, ports, labels, times and a watched disk limit are changed while it runs; any other difference is refused. */
async function reused(existing: Sandbox, spec: Spec): Promise<Sandbox> {
  const { spec: before, approvedDockerfile } = existing.record;
  const isDiskLive = differsInDisk(before, spec) && (await existing.canChangeDisk());
  // Its image was built: the default does not matter.
  const now = approvedDockerfile === undefined ? spec : { ...spec, images: before.images };
  const differences = fixedDifferences(before, now, isDiskLive);
  if (differences.length === 0) {
    await existing.adopt(spec);
    return existing;
  }
  throw new SallyportError(
    'sandbox_exists',
    `sandbox ${existing.name} is there already and differs in ${differences.join(', ')}`,
    {
      details: { sandbox: existing.name, fields: [...differences] },
      advice: `Remove it (\`sally rm ${existing.name}\`) or give the new one another name (\`--name\`).`,
    },
  );
}

function taken(name: string): SallyportError {
  return new SallyportError('sandbox_exists', `there is a sandbox ${name} already`, {
    details: { sandbox: name },
    advice: `Choose another name, or remove it first: \`sally rm ${name}\`.`,
  });
}
