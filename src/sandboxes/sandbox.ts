/**
 * One sandbox: everything that may be done with it, and what happens to it by itself.
 *
 * Whatever changes its state goes through one queue, so that two callers never change it at once; using it does not.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { deferred } from '../lib/deferred.ts';
import { Serial } from '../lib/serial.ts';
import type { Slots } from '../lib/slots.ts';
import type { Files } from '../porter/files.ts';
import type { Porter } from '../porter/porter.ts';
import type { SocketTarget } from '../porter/socket-target.ts';
import type { Tunnel } from '../porter/tunnel.ts';
import { isSallyportError, SallyportError } from '../protocol/errors.ts';
import type { ExecId, SandboxId } from '../protocol/ids.ts';
import type { PortSpec } from '../protocol/port-spec.ts';
import type { ExecBody, NetChange } from '../protocol/requests.ts';
import type { Spec } from '../protocol/spec.ts';
import type { SandboxState } from '../protocol/states.ts';
import type {
  EgressLineView,
  NetView,
  PortView,
  ProvisionSourceView,
  SandboxView,
  StatsView,
  VerifyView,
  WorkspaceScanView,
} from '../protocol/views.ts';
import { adoptSpec } from './adopt-spec.ts';
import type { BoundPort } from './bound-port.ts';
import type { BoxExec } from './box-exec.ts';
import { BoxKeeper } from './box-keeper.ts';
import { requireNoDevTools } from './browser-port.ts';
import { type CopiedFolder, CopiedWorkspace, copiedFolder } from './copied-workspace.ts';
import type { DiskMeter, WatchedSandbox } from './disk-watch.ts';
import { elsewhere, isElsewhere, whereItIs } from './elsewhere.ts';
import { LifeWatch } from './life-watch.ts';
import { type Action, refusal, verdict } from './lifecycle.ts';
import { MemoryDeaths } from './memory-deaths.ts';
import { MountGuard } from './mount-guard.ts';
import { PlantedWatch } from './planted-watch.ts';
import type { BoxEvent } from './ports.ts';
import { Presence } from './presence.ts';
import { requireProvisionSource } from './provision-source.ts';
import { PublishedPorts } from './published-ports.ts';
import { RecordKeeper } from './record-keeper.ts';
import type { DiskOver, ExecRecord, SandboxRecord } from './records.ts';
import type { RuntimeChecks } from './runtime-checks.ts';
import { diskErrorOf, SandboxDisk } from './sandbox-disk.ts';
import { SandboxExecs } from './sandbox-execs.ts';
import { SandboxNet } from './sandbox-net.ts';
import { sandboxView } from './sandbox-view.ts';
import type { StubTurns } from './stubs.ts';
import { verifyBox, withRows, withScan } from './verify.ts';
import { type BroughtBack, requireNoChanges, type WorkspaceChange } from './workspace-changes.ts';
import type { SandboxWorld } from './world.ts';

const probeTimeoutMs = 3000;
/** A probe that succeeded is believed for this long. */
const probeFreshMs = 3000;
const stopGraceMs = 5000;
/** A state that an action has left behind is looked at again for this long, with rests between. */
const abandonedMs = 5000;
const abandonedRestMs = 100;
const isOver: ReadonlySet<SandboxState> = new Set(['STOPPING', 'STOPPED', 'FAILED', 'DELETING', 'DELETED']);

export interface SandboxParts {
  readonly record: SandboxRecord;
  readonly execs: readonly ExecRecord[];
  readonly stubs: StubTurns;
  readonly runtimes: RuntimeChecks;
  readonly disk: DiskMeter;
  /** Of the spec, bound before anything was made. */
  readonly ports?: readonly BoundPort[];
  /** It is gone for good. */
  readonly removed: (sandbox: Sandbox) => void;
}

export interface RemoveOptions {
  /** Also if changes of a copied workspace are lost. */
  readonly force: boolean;
  readonly scan?: boolean;
  readonly signal?: AbortSignal;
}

export interface StartOptions {
  /** One run for files and shells. */
  readonly cleanUp?: boolean;
  /** Changes the disk limit. */
  readonly diskBytes?: number;
}

export class Sandbox {
  readonly #world: SandboxWorld;
  readonly #keeper: RecordKeeper;
  readonly #box: BoxKeeper;
  readonly #turns = new Serial();
  readonly #baselineMoves = new Serial();
  readonly #execs: SandboxExecs;
  readonly #memory = new MemoryDeaths();
  readonly #clients: Presence;
  readonly #life: LifeWatch;
  readonly #mounts: MountGuard;
  readonly #planted: PlantedWatch;
  readonly #net: SandboxNet;
  readonly #ports: PublishedPorts;
  readonly #disk: SandboxDisk;
  readonly #meter: DiskMeter;
  readonly #abort = new AbortController();
  #made: Promise<void> | undefined;
  #removing: Promise<void> | undefined;
  #recovered: Promise<void> = Promise.resolve();
  #probedMs = Number.NEGATIVE_INFINITY;

  constructor(world: SandboxWorld, parts: SandboxParts) {
    this.#world = world;
    this.#keeper = new RecordKeeper(world, parts.record, (to) => {
      this.#onState(to);
      if (to === 'DELETED') parts.removed(this);
    });
    const { name, image, plan } = parts.record;
    const keeper = this.#keeper;
    this.#execs = new SandboxExecs(
      {
        store: world.store,
        now: world.now,
        checkpoint: world.checkpoint,
        clientAbsenceMs: world.clientAbsenceMs,
        overduePatienceMs: world.overduePatienceMs,
        isActive: () => this.state === 'READY' && this.#box.link?.isReached === true,
        overdue: (error) => this.#background('stop a sandbox that does not obey', this.#onLost(error)),
        ranOutOfMemory: () =>
          this.#memory.since(async () => (await this.#box.link?.answering(probeTimeoutMs))?.files),
        get where() {
          const { engine, runtime } = keeper.record.isolation;
          return `${engine} ${runtime} ${plan.profile} ${image}`;
        },
        sandboxName: name,
        changed: (exec) => this.#onExecEnded(exec),
        report: world.report,
      },
      parts.execs,
    );
    this.#box = new BoxKeeper(world, {
      keeper: this.#keeper,
      execs: this.#execs,
      memory: this.#memory,
      stubs: parts.stubs,
      runtimes: parts.runtimes,
      requireDisk: () => this.#disk.requireWithinLimits(),
      signal: this.#abort.signal,
      lost: (error) => this.#background('look after a lost connection', this.#onLost(error)),
    });
    this.#net = new SandboxNet(world, this.#keeper, this.#box);
    this.#meter = parts.disk;
    this.#disk = new SandboxDisk({
      keeper: this.#keeper,
      engine: world.engine,
      meter: parts.disk,
      tell: (code, message) => this.#box.tell(code, message),
      report: world.report,
    });
    this.#mounts = new MountGuard({
      record: () => this.record,
      running: () => this.#execs.running.length,
      tell: (code, message) => this.#box.tell(code, message),
    });
    this.#planted = new PlantedWatch({
      record: () => this.record,
      now: world.now,
      tell: (code, message) => this.#box.tell(code, message),
      report: world.report,
      load: (of) => world.store.loadManifest(this.id, of),
      save: (of, baseline) => world.store.saveManifest(this.id, baseline, of),
    });
    this.#ports = new PublishedPorts(
      {
        record: () => this.record,
        note: (news) => this.#keeper.note(news),
        connect: (port) => this.connect({ host: 'localhost', port }),
        requirePublishable: (box) =>
          requireNoDevTools(
            box,
            name,
            this.#execs.running.map((exec) => exec.view().argv),
          ),
        hold: () => this.hold(),
        tell: (event) => void world.store.events.append(event),
        report: (what, error) => world.report(`${what} of ${name}`, error),
      },
      parts.ports,
    );
    this.#clients = new Presence(world.clientAbsenceMs, () => this.#onAbandoned());
    this.#life = new LifeWatch(() => this.record, {
      alive: () => this.#execs.running.length > 0 || this.#clients.count > 0,
      over: (why) =>
        this.#background(
          'stop',
          this.#act('stop', () => this.#box.stop(why, stopGraceMs)),
        ),
    });
  }

  get id(): SandboxId {
    return this.record.id;
  }

  get name(): string {
    return this.record.name;
  }

  get state(): SandboxState {
    return this.record.state;
  }

  get record(): SandboxRecord {
    return this.#keeper.record;
  }

  /** Another engine than this daemon's holds it: it can be looked at, and no more. */
  get isElsewhere(): boolean {
    return isElsewhere(this.record, this.#world.engine.family);
  }

  view(): SandboxView {
    const view = {
      ...sandboxView(this.record, {
        runningExecs: this.#execs.running.length,
        ports: this.#ports.views,
        disk: this.#disk.view(),
      }),
      ...(this.#planted.isNeeded ? { scanned: true as const } : {}),
    };
    return this.isElsewhere ? { ...view, reason: whereItIs(this.record, this.#world.engine.family) } : view;
  }

  /** The work that begins with a record in PENDING. Goes on without its caller (A13). */
  make(): void {
    this.#meter.wake();
    this.#made = this.#turns.run(() => {
      const baseline = this.#planted.takeBaseline();
      // A create that fails before it is waited for has its own reason.
      baseline.catch(() => {});
      return this.#box.make(baseline);
    });
    this.#made.catch(() => {});
  }

  /** Rejects with the reason if it did not come to be. */
  async ready(): Promise<void> {
    await this.#made;
    await this.#settled();
    if (this.state !== 'READY') throw this.#refusal('use');
  }

  /** G2: whatever it is in, it runs and answers afterwards. */
  async ensureRunning(): Promise<void> {
    await this.#settled();
    if (this.state === 'PAUSED') await this.resume();
    if (this.record.cleanUp !== undefined) return await this.start();
    if (this.state === 'READY') await this.#healMounts();
    if (this.state === 'READY' && (await this.#answering()) !== undefined) return;
    if (this.state === 'READY')
      await this.#act('stop', () => this.#box.stop('it did not answer', stopGraceMs));
    await this.start();
  }

  async start(options: StartOptions = {}): Promise<void> {
    const { cleanUp = false, diskBytes } = options;
    await this.#settled();
    await this.#turns.run(async () => {
      if (diskBytes !== undefined) await this.#disk.change(diskBytes);
      if (cleanUp) await this.#startToCleanUp('asked');
      else await this.#startWhole(diskBytes !== undefined);
    });
  }

  async #startWhole(isDiskAsked: boolean): Promise<void> {
    await this.#disk.requireRoom(isDiskAsked);
    if (this.record.cleanUp !== undefined) await this.#box.stop('its clean-up is over', stopGraceMs);
    await this.#doIf('start', async () => {
      // Before anything is made: a port that another program has is a reason not to begin.
      await this.#ports.openAll();
      await this.#box.start();
    });
  }

  /** Must be called in a turn. */
  async #startToCleanUp(cleanUp: 'asked' | 'brief'): Promise<void> {
    if (this.state === 'READY' && this.record.cleanUp === undefined && cleanUp === 'asked') {
      throw new SallyportError(
        'sandbox_state',
        `sandbox ${this.name} is running, so it cannot start for clean-up`,
        {
          details: { sandbox: this.name, state: this.state },
          advice: `Stop it first: \`sally stop ${this.name}\`.`,
        },
      );
    }
    await this.#doIf('start', () => this.#box.start(cleanUp));
    if (cleanUp === 'asked' && this.record.cleanUp === 'brief') this.#keeper.note({ cleanUp });
  }

  /** Resolves with what was planted, by a scan after the stop; undefined: nothing is scanned. */
  async stop(graceMs: number): Promise<WorkspaceScanView | undefined> {
    await this.#act('stop', () => this.#box.stop(undefined, graceMs));
    return await this.#planted.result();
  }

  /** What was planted on the host, by a scan that begins now and is waited for a moment. Undefined: nothing is scanned. */
  async scan(): Promise<WorkspaceScanView | undefined> {
    this.#requireHere();
    return await this.#planted.result();
  }

  async pause(): Promise<void> {
    await this.#act('pause', () => this.#box.pause());
  }

  async resume(): Promise<void> {
    await this.#act('resume', () => this.#box.unpause());
  }

  /**
   * Idempotent. Runs to its end whatever the caller does (A13). Without force it keeps what exists nowhere else: `signal` ends
   * the look for that, and then nothing is removed. With `scan` it is stopped before, and resolves with what was planted.
   */
  async remove({ force, scan = false, signal }: RemoveOptions): Promise<WorkspaceScanView | undefined> {
    this.#requireHere();
    if (!force && this.#removing === undefined) {
      await this.requireNoChanges(signal);
      signal?.throwIfAborted();
    }
    const planted = scan && this.#removing === undefined ? await this.#lastScan(force) : undefined;
    this.#abort.abort(new SallyportError('cancelled', `sandbox ${this.name} was removed while it was made`));
    this.#removing ??= this.#turns.run(() => this.#box.remove());
    try {
      await this.#removing;
    } catch (error) {
      // The next caller tries again.
      this.#removing = undefined;
      throw error;
    }
    return planted;
  }

  /** What runs could plant something until it ends, and a sandbox that was removed cannot be asked. */
  async #lastScan(force: boolean): Promise<WorkspaceScanView | undefined> {
    if (!this.#planted.isNeeded || this.state === 'DELETING' || this.state === 'DELETED') return undefined;
    // A create is aborted by the removal, and nothing waits for it.
    if (this.state !== 'PENDING') {
      const stopped = this.#act('stop', () => this.#box.stop(undefined, 0));
      // The removal ends what a stop could not.
      await (force
        ? stopped.catch((error: unknown) => this.#world.report(`stop ${this.name}`, error))
        : stopped);
    }
    return await this.#planted.result();
  }

  async exec(body: ExecBody): Promise<BoxExec> {
    const porter = await this.#usable(body.during_clean_up === true);
    const exec = this.#execs.start(porter, this.record, body);
    this.#clients.watch();
    return exec;
  }

  execs(): readonly BoxExec[] {
    return this.#execs.all();
  }

  getExec(reference: string): BoxExec {
    const exec = this.#execs.get(reference);
    // Nobody here will hear of its end.
    if (this.#execs.running.includes(exec)) this.#requireHere();
    return exec;
  }

  forgetExec(id: ExecId): void {
    this.#execs.forget(id);
  }

  /** Starts a sandbox that was stopped for its disk usage, in a clean-up run. */
  async files(): Promise<Files> {
    await this.#settled();
    if (this.#disk.isHalted) await this.#turns.run(() => this.#startToCleanUp('brief'));
    return (await this.#usable(true)).files;
  }

  async connect(target: SocketTarget, signal?: AbortSignal): Promise<Tunnel> {
    const porter = await this.#usable(false);
    return await porter.connect(target, signal === undefined ? {} : { signal });
  }

  /** From now on, also after a restart, until it is taken back. */
  async publish(port: PortSpec): Promise<PortView> {
    await this.#settled();
    if (verdict('use', this.state) !== 'do') throw this.#refusal('use');
    this.#disk.requireNoCleanUp();
    return await this.#ports.publish(port);
  }

  async unpublish(host: number): Promise<void> {
    await this.#settled();
    this.#ports.unpublish(host);
  }

  /** It is asked for by another spec, of which nothing differs that is fixed (R4). */
  async adopt(spec: Spec): Promise<void> {
    this.#requireHere();
    await adoptSpec(spec, {
      keeper: this.#keeper,
      net: this.#net,
      ports: this.#ports,
      timesChanged: () => {
        if (this.state === 'READY') this.#life.begin();
      },
    });
  }

  /** R4: whether the disk limit can change without a new container. */
  async canChangeDisk(): Promise<boolean> {
    this.#requireHere();
    return await this.#disk.isLive({ all: true });
  }

  /** Of ports that were bound with it. */
  tellPorts(): void {
    for (const port of this.record.ports ?? []) this.#ports.told(port);
  }

  async stats(): Promise<StatsView> {
    await this.#settled();
    if (verdict('use', this.state) !== 'do') throw this.#refusal('use');
    const stats = await this.#world.engine.stats(this.#box.boxId());
    return {
      at: this.#world.now(),
      memory_bytes: stats.memoryBytes,
      memory_limit_bytes: stats.memoryLimitBytes,
      cpu_seconds: stats.cpuSeconds,
      pids: stats.pids,
    };
  }

  /** What a service of it has printed, and with `follow` what comes. */
  async serviceLogs(
    service: string,
    options: { readonly tail?: number; readonly follow?: boolean; readonly signal?: AbortSignal },
  ): Promise<AsyncIterable<Buffer>> {
    this.#requireHere();
    return this.#world.services.logs(await this.#box.services.containerOf(service), options);
  }

  provisionSource(): ProvisionSourceView {
    return requireProvisionSource(this.record, this.#execs.all().length);
  }

  async verify(): Promise<VerifyView> {
    const look = async (): Promise<VerifyView> => {
      const porter = await this.#usable(true);
      const [verified, scan, disk] = await Promise.all([
        verifyBox(porter, this.record, this.#box.gate),
        this.#planted.result(),
        this.#disk.rows(),
      ]);
      return withRows(withScan(verified, scan, this.record), disk);
    };
    try {
      return await look();
    } catch (error) {
      if (!isSallyportError(error, 'porter_gone')) throw error;
      // The connection was left for a relay meanwhile. To read again changes nothing.
      return await look();
    }
  }

  /** What is different in a copied workspace from what was put in. */
  async changes(
    signal?: AbortSignal,
  ): Promise<{ readonly folder: CopiedFolder; readonly changes: readonly WorkspaceChange[] }> {
    const workspace = this.#workspace();
    const changes = await workspace.changes(() => this.#filesOfAny(), signal);
    return { folder: workspace.folder, changes };
  }

  /** A file of a copied workspace as it was put in. */
  async baseContent(path: Buffer): Promise<Buffer> {
    return await this.#workspace().base(path);
  }

  /** These changes are on the host now: they count as put in. */
  async moveBaseline(news: readonly BroughtBack[]): Promise<void> {
    await this.#workspace().moveBaseline(() => this.#filesOfAny(), news);
  }

  net(): NetView {
    return this.#net.view();
  }

  /** Holds at once, and as long as the sandbox exists. */
  changeNet(change: NetChange): Promise<NetView> {
    this.#requireHere();
    return this.#net.change(change);
  }

  netLog(options: { readonly follow: boolean; readonly signal: AbortSignal }): AsyncIterable<EgressLineView> {
    return this.#net.log(options);
  }

  /** The view of `DiskWatch`. */
  get watched(): WatchedSandbox {
    const { run } = this.#disk;
    if (this.isElsewhere) return { isActive: false, containers: [], exceed: async () => {} };
    return {
      isActive: this.#disk.isActive,
      containers: this.#disk.watched,
      exceed: (over) => this.#exceedDisk(over, run),
    };
  }

  /** A create or start holds the turn, so its containers are stopped directly. */
  async #exceedDisk(over: DiskOver, run: string): Promise<void> {
    if (this.state === 'PENDING') {
      await this.#box.haltOverDisk(over);
      return;
    }
    await this.#turns.run(async () => {
      if (this.state === 'READY' && this.#disk.run === run) await this.#box.stopOverDisk(over);
    });
  }

  /** A client is there until the returned function is called. */
  hold(): () => void {
    return this.#clients.hold();
  }

  /** What the engine says happened. Most of it is known already, because it was done here. */
  onEngineEvent(event: BoxEvent): void {
    const { kind, boxId } = event;
    if (boxId !== this.record.containerId) this.#box.services.onEngineEvent(event);
    else if (kind === 'out-of-memory') this.#memory.engineTold();
    else if (kind !== 'started') this.#background('look again', this.reconcile());
  }

  /** Makes what is remembered true again. */
  async reconcile(meanwhile?: string): Promise<void> {
    if (this.isElsewhere) return;
    await this.#turns.run(() => this.#box.reconcile(meanwhile === undefined ? {} : { meanwhile }));
  }

  /**
   * The same for a daemon that begins. Resolves when its state is true; the connection to one that runs is made after
   * that, when there is a slot, and whoever wants to use it waits for it.
   */
  async recover(slots: Slots): Promise<void> {
    if (this.isElsewhere) return;
    const stateIsTrue = deferred<void>();
    const work = this.#turns.run(() =>
      this.#box.reconcile({
        connecting: async (connect) => {
          stateIsTrue.resolve();
          await slots.run(connect);
        },
      }),
    );
    this.#recovered = work.catch((error: unknown) => this.#world.report(`recover ${this.name}`, error));
    await Promise.race([stateIsTrue.promise, this.#recovered]);
    if (this.state === 'READY') this.#watchRunning();
  }

  /** Never rejects. Until then its commands may not be what they seem. */
  get recovered(): Promise<void> {
    return this.#recovered;
  }

  /** The daemon ends and the box goes on. */
  letGo(): void {
    this.#life.end();
    this.#mounts.end();
    this.#planted.end();
    this.#clients.end();
    this.#ports.closeAll();
    this.#box.services.letGo();
    this.#box.drop();
  }

  async #usable(duringCleanUp: boolean): Promise<Porter> {
    await this.#settled();
    if (verdict('use', this.state) !== 'do') throw this.#refusal('use');
    if (!duringCleanUp) this.#disk.requireNoCleanUp();
    this.#life.touch();
    await this.#healMounts();
    const porter = await this.#answering();
    if (porter !== undefined) return porter;
    // It may just have ended.
    if (verdict('use', this.state) !== 'do') throw this.#refusal('use');
    throw new SallyportError('sandbox_state', `sandbox ${this.name} does not answer`, {
      details: { sandbox: this.name, state: this.state },
      advice: `\`sally stop ${this.name}\`, then \`sally start ${this.name}\`.`,
    });
  }

  /** G2: what the host removed or replaced is mounted anew by a start, unless something runs that would not survive it. */
  async #healMounts(): Promise<void> {
    if ((await this.#mounts.stale()) === undefined) return;
    await this.#turns.run(async () => {
      // Whoever was here before may have done it.
      const stale = this.state === 'READY' ? await this.#mounts.stale() : undefined;
      if (stale === undefined || (await this.#mounts.goesOn())) return;
      this.#mounts.requireHealable(stale);
      const { cleanUp } = this.record;
      const what = `${stale.source} was ${stale.how === 'gone' ? 'removed' : 'replaced'} on the host`;
      this.#box.tell('mount_healed', `${what}; the sandbox is started again with what is there now`);
      await this.#box.stop(what, stopGraceMs);
      await this.#box.start(cleanUp);
    });
  }

  /** Cheap enough for every call: a round trip, and none if one was made a moment ago (G2). */
  async #answering(): Promise<Porter | undefined> {
    const { link } = this.#box;
    if (link === undefined) return undefined;
    if (link.current !== undefined && performance.now() - this.#probedMs < probeFreshMs) return link.current;
    const porter = await link.answering(probeTimeoutMs);
    this.#probedMs = porter === undefined ? Number.NEGATIVE_INFINITY : performance.now();
    return porter;
  }

  /** Until nothing is under way that would change its state. */
  async #settled(): Promise<void> {
    this.#requireHere();
    await this.#recovered;
    const endMs = performance.now() + abandonedMs;
    const isWaited = (): boolean => verdict('use', this.state) === 'wait';
    while (isWaited()) {
      // In a turn of its own: the action that left this state has ended.
      if (!(await this.#turns.run(async () => isWaited()))) continue;
      try {
        await this.reconcile();
      } catch (error) {
        if (performance.now() > endMs) throw error;
      }
      if (!isWaited()) return;
      if (performance.now() > endMs) throw this.#refusal('use');
      await sleep(abandonedRestMs);
    }
  }

  #requireHere(): void {
    if (this.isElsewhere) throw elsewhere(this.record, this.#world.engine.family);
  }

  async #act(action: Action, work: () => Promise<void>): Promise<void> {
    await this.#settled();
    await this.#turns.run(() => this.#doIf(action, work));
  }

  /** Must be called in a turn. */
  async #doIf(action: Action, work: () => Promise<void>): Promise<void> {
    const decided = verdict(action, this.state);
    if (decided === 'nothing') return;
    if (decided !== 'do') throw this.#refusal(action);
    await work();
  }

  #refusal(action: Action): SallyportError {
    return this.#disk.isHalted
      ? (diskErrorOf(this.record) ?? refusal(action, this.record))
      : refusal(action, this.record);
  }

  /** Rejects with `sandbox_changed` where a removal would lose what exists nowhere else. */
  async requireNoChanges(signal?: AbortSignal): Promise<void> {
    await this.#settled();
    if (this.record.containerId === undefined || copiedFolder(this.record) === undefined) return;
    requireNoChanges(this.record, (await this.changes(signal)).changes);
  }

  /** Starts one that is stopped. One that runs and is slow to answer is not stopped for this. */
  async #filesOfAny(): Promise<Files> {
    await this.#settled();
    if (this.state !== 'READY' && !this.#disk.isHalted) await this.ensureRunning();
    return await this.files();
  }

  #workspace(): CopiedWorkspace {
    return new CopiedWorkspace(this.record, this.#world, this.#baselineMoves);
  }

  async #onLost(error: SallyportError): Promise<void> {
    await this.#turns.run(() =>
      error.code === 'porter_protocol' ? this.#box.distrust(error) : this.#box.reconcile(),
    );
  }

  #onState(to: SandboxState): void {
    this.#probedMs = Number.NEGATIVE_INFINITY;
    if (to === 'PENDING') this.#meter.wake();
    if (to === 'READY') this.#watchRunning();
    else {
      this.#life.end();
      this.#mounts.end();
    }
    if (to === 'STOPPED') this.#planted.request();
    if (to === 'DELETING') this.#planted.end();
    if (isOver.has(to)) this.#ports.closeAll();
    if (to === 'DELETED') this.#clients.end();
  }

  /** Begins with READY, and again in a daemon that finds the sandbox running. */
  #watchRunning(): void {
    this.#life.begin();
    this.#mounts.begin();
    this.#clients.watch();
    this.#meter.wake();
    if (this.record.cleanUp === undefined) this.#ports.openIfPossible();
  }

  #onExecEnded(exec: BoxExec): void {
    this.#life.touch();
    this.#planted.request();
    if (this.record.ephemeral && exec.isMain) this.#background('remove', this.remove({ force: true }));
  }

  /** Nobody has been there for a while. Only an ephemeral sandbox belongs to its client. */
  #onAbandoned(): void {
    const { ephemeral, detached } = this.record;
    if (!ephemeral || detached) return;
    const used = this.#execs.all().some((exec) => exec.held);
    if (used) this.#clients.watch();
    else this.#background('remove', this.remove({ force: true }));
  }

  #background(what: string, work: Promise<unknown>): void {
    work.catch((error: unknown) => this.#world.report(`${what}: ${this.name}`, error));
  }
}
