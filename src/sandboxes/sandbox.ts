/**
 * One sandbox: everything that may be done with it, and what happens to it by itself.
 *
 * Whatever changes its state goes through one queue, so that two callers never change it at once; using it does not.
 */

import { deferred } from '../lib/deferred.ts';
import { Serial } from '../lib/serial.ts';
import type { Slots } from '../lib/slots.ts';
import type { Files } from '../porter/files.ts';
import type { Porter } from '../porter/porter.ts';
import type { SocketTarget } from '../porter/socket-target.ts';
import type { Tunnel } from '../porter/tunnel.ts';
import { isSallyportError, SallyportError } from '../protocol/errors.ts';
import type { ExecId, SandboxId } from '../protocol/ids.ts';
import type { ExecBody } from '../protocol/requests.ts';
import type { SandboxState } from '../protocol/states.ts';
import type { SandboxView, StatsView, VerifyView } from '../protocol/views.ts';
import type { BoxExec } from './box-exec.ts';
import { BoxKeeper } from './box-keeper.ts';
import { type CopiedFolder, CopiedWorkspace, copiedFolder } from './copied-workspace.ts';
import { LifeWatch } from './life-watch.ts';
import { type Action, refusal, verdict } from './lifecycle.ts';
import { MemoryDeaths } from './memory-deaths.ts';
import { MountGuard } from './mount-guard.ts';
import type { BoxEvent } from './ports.ts';
import { Presence } from './presence.ts';
import { RecordKeeper } from './record-keeper.ts';
import type { ExecRecord, SandboxRecord } from './records.ts';
import { SandboxExecs } from './sandbox-execs.ts';
import { sandboxView } from './sandbox-view.ts';
import type { StubTurns } from './stubs.ts';
import { verifyBox } from './verify.ts';
import { type BroughtBack, requireNoChanges, type WorkspaceChange } from './workspace-changes.ts';
import type { SandboxWorld } from './world.ts';

const probeTimeoutMs = 3000;
/** A probe that succeeded is believed for this long. */
const probeFreshMs = 3000;
const stopGraceMs = 5000;

export interface SandboxParts {
  readonly record: SandboxRecord;
  readonly execs: readonly ExecRecord[];
  readonly stubs: StubTurns;
  /** It is gone for good. */
  readonly removed: (sandbox: Sandbox) => void;
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
    const { name, image, isolation, plan } = parts.record;
    this.#execs = new SandboxExecs(
      {
        store: world.store,
        now: world.now,
        checkpoint: world.checkpoint,
        clientAbsenceMs: world.clientAbsenceMs,
        ranOutOfMemory: () => this.#memory.since(this.#box.link?.current?.files),
        where: `${isolation.engine} ${isolation.runtime} ${plan.profile} ${image}`,
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
      signal: this.#abort.signal,
      lost: (error) => this.#background('look after a lost connection', this.#onLost(error)),
    });
    this.#mounts = new MountGuard({
      record: () => this.record,
      running: () => this.#execs.running.length,
      tell: (code, message) => this.#box.tell(code, message),
    });
    this.#clients = new Presence(world.clientAbsenceMs, () => this.#onAbandoned());
    this.#life = new LifeWatch(parts.record, {
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

  view(): SandboxView {
    return sandboxView(this.record, this.#execs.running.length);
  }

  /** The work that begins with a record in PENDING. Goes on without its caller (A13). */
  make(): void {
    this.#made = this.#turns.run(() => this.#box.make());
    this.#made.catch(() => {});
  }

  /** Rejects with the reason if it did not come to be. */
  async ready(): Promise<void> {
    await this.#made;
    await this.#settled();
    if (this.state !== 'READY') throw refusal('use', this.record);
  }

  /** G2: whatever it is in, it runs and answers afterwards. */
  async ensureRunning(): Promise<void> {
    await this.#settled();
    if (this.state === 'PAUSED') await this.resume();
    if (this.state === 'READY') await this.#healMounts();
    if (this.state === 'READY' && (await this.#answers())) return;
    if (this.state === 'READY')
      await this.#act('stop', () => this.#box.stop('it did not answer', stopGraceMs));
    await this.start();
  }

  async start(): Promise<void> {
    await this.#act('start', () => this.#box.start());
  }

  async stop(graceMs: number): Promise<void> {
    await this.#act('stop', () => this.#box.stop(undefined, graceMs));
  }

  async pause(): Promise<void> {
    await this.#act('pause', () => this.#box.pause());
  }

  async resume(): Promise<void> {
    await this.#act('resume', () => this.#box.unpause());
  }

  /** Idempotent. Runs to its end whatever the caller does (A13). Without force it keeps what exists nowhere else. */
  async remove({ force }: { readonly force: boolean }): Promise<void> {
    if (!force && this.#removing === undefined) await this.#requireNoChanges();
    this.#abort.abort(new SallyportError('cancelled', `sandbox ${this.name} was removed while it was made`));
    this.#removing ??= this.#turns.run(() => this.#box.remove());
    try {
      await this.#removing;
    } catch (error) {
      // The next caller tries again.
      this.#removing = undefined;
      throw error;
    }
  }

  async exec(body: ExecBody): Promise<BoxExec> {
    const porter = await this.#usable();
    const exec = this.#execs.start(porter, this.record, body);
    this.#clients.watch();
    return exec;
  }

  execs(): readonly BoxExec[] {
    return this.#execs.all();
  }

  getExec(reference: string): BoxExec {
    return this.#execs.get(reference);
  }

  forgetExec(id: ExecId): void {
    this.#execs.forget(id);
  }

  async files(): Promise<Files> {
    return (await this.#usable()).files;
  }

  async connect(target: SocketTarget, signal?: AbortSignal): Promise<Tunnel> {
    const porter = await this.#usable();
    return await porter.connect(target, signal === undefined ? {} : { signal });
  }

  async stats(): Promise<StatsView> {
    await this.#settled();
    if (verdict('use', this.state) !== 'do') throw refusal('use', this.record);
    const stats = await this.#world.engine.stats(this.#box.boxId());
    return {
      at: this.#world.now(),
      memory_bytes: stats.memoryBytes,
      memory_limit_bytes: stats.memoryLimitBytes,
      cpu_seconds: stats.cpuSeconds,
      pids: stats.pids,
    };
  }

  async verify(): Promise<VerifyView> {
    try {
      return await verifyBox(await this.#usable(), this.record);
    } catch (error) {
      if (!isSallyportError(error, 'porter_gone')) throw error;
      // The connection was left for a relay meanwhile. To read again changes nothing.
      return await verifyBox(await this.#usable(), this.record);
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

  /** A client is there until the returned function is called. */
  hold(): () => void {
    return this.#clients.hold();
  }

  /** What the engine says happened. Most of it is known already, because it was done here. */
  onEngineEvent({ kind }: BoxEvent): void {
    if (kind === 'out-of-memory') this.#memory.engineTold();
    else if (kind !== 'started') this.#background('look again', this.reconcile());
  }

  /** Makes what is remembered true again. */
  async reconcile(meanwhile?: string): Promise<void> {
    await this.#turns.run(() => this.#box.reconcile(meanwhile === undefined ? {} : { meanwhile }));
  }

  /**
   * The same for a daemon that begins. Resolves when its state is true; the connection to one that runs is made after
   * that, when there is a slot, and whoever wants to use it waits for it.
   */
  async recover(slots: Slots): Promise<void> {
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
    if (this.state === 'READY') this.#mounts.begin();
  }

  /** Never rejects. Until then its commands may not be what they seem. */
  get recovered(): Promise<void> {
    return this.#recovered;
  }

  /** The daemon ends and the box goes on. */
  letGo(): void {
    this.#life.end();
    this.#mounts.end();
    this.#clients.end();
    this.#box.drop();
  }

  async #usable(): Promise<Porter> {
    await this.#settled();
    if (verdict('use', this.state) !== 'do') throw refusal('use', this.record);
    this.#life.touch();
    await this.#healMounts();
    const answers = await this.#answers();
    const porter = this.#box.link?.current;
    if (answers && porter !== undefined) return porter;
    // It may just have ended.
    if (verdict('use', this.state) !== 'do') throw refusal('use', this.record);
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
      if (stale === undefined) return;
      this.#mounts.requireHealable(stale);
      const what = `${stale.source} was ${stale.how === 'gone' ? 'removed' : 'replaced'} on the host`;
      this.#box.tell('mount_healed', `${what}; the sandbox is started again with what is there now`);
      await this.#box.stop(what, stopGraceMs);
      await this.#box.start();
    });
  }

  /** Cheap enough for every call: a round trip, and none if one was made a moment ago (G2). */
  async #answers(): Promise<boolean> {
    const { link } = this.#box;
    if (link === undefined) return false;
    if (link.current !== undefined && performance.now() - this.#probedMs < probeFreshMs) return true;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<boolean>((resolve) => {
      timer = setTimeout(resolve, probeTimeoutMs, false);
    });
    const answer = link.porter().then((porter) => porter.ping());
    const answered = await Promise.race([
      answer.then(
        () => true,
        () => false,
      ),
      late,
    ]);
    clearTimeout(timer);
    this.#probedMs = answered ? performance.now() : Number.NEGATIVE_INFINITY;
    return answered;
  }

  /** Until nothing is under way that would change its state. */
  async #settled(): Promise<void> {
    await this.#recovered;
    while (verdict('use', this.state) === 'wait') await this.#turns.run(async () => {});
  }

  async #act(action: Action, work: () => Promise<void>): Promise<void> {
    await this.#turns.run(async () => {
      const decided = verdict(action, this.state);
      if (decided === 'nothing') return;
      if (decided !== 'do') throw refusal(action, this.record);
      await work();
    });
  }

  async #requireNoChanges(): Promise<void> {
    await this.#settled();
    if (this.record.containerId === undefined || copiedFolder(this.record) === undefined) return;
    requireNoChanges(this.record, (await this.changes()).changes);
  }

  /** Starts one that is stopped. One that runs and is slow to answer is not stopped for this. */
  async #filesOfAny(): Promise<Files> {
    await this.#settled();
    if (this.state !== 'READY') await this.ensureRunning();
    return await this.files();
  }

  #workspace(): CopiedWorkspace {
    return new CopiedWorkspace(this.record, this.#world.store, this.#baselineMoves);
  }

  async #onLost(error: SallyportError): Promise<void> {
    await this.#turns.run(() =>
      error.code === 'porter_protocol' ? this.#box.distrust(error) : this.#box.reconcile(),
    );
  }

  #onState(to: SandboxState): void {
    this.#probedMs = Number.NEGATIVE_INFINITY;
    if (to === 'READY') this.#life.begin();
    else this.#life.end();
    if (to === 'READY') this.#mounts.begin();
    else this.#mounts.end();
    if (to === 'READY') this.#clients.watch();
    if (to === 'DELETED') this.#clients.end();
  }

  #onExecEnded(exec: BoxExec): void {
    this.#life.touch();
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

  #background(what: string, work: Promise<void>): void {
    work.catch((error: unknown) => this.#world.report(`${what}: ${this.name}`, error));
  }
}
