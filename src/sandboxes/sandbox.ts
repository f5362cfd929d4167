/**
 * One sandbox: its record, its connection, its commands, and everything that may be done with it.
 *
 * Whatever changes its state goes through one queue, so that two callers never change it at once; using it does not. Every
 * change is an event first, then the record on disk, then visible here.
 */

import { Serial } from '../lib/serial.ts';
import type { Files } from '../porter/files.ts';
import type { Porter } from '../porter/porter.ts';
import type { SocketTarget } from '../porter/socket-target.ts';
import type { Tunnel } from '../porter/tunnel.ts';
import { SallyportError } from '../protocol/errors.ts';
import type { SandboxId } from '../protocol/ids.ts';
import { label } from '../protocol/labels.ts';
import type { ExecBody } from '../protocol/requests.ts';
import type { SandboxState } from '../protocol/states.ts';
import type { SandboxView, StatsView, VerifyView } from '../protocol/views.ts';
import type { BoxExec } from './box-exec.ts';
import { BoxLink } from './box-link.ts';
import { LifeWatch } from './life-watch.ts';
import { type Action, refusal, verdict } from './lifecycle.ts';
import { type Materialisation, materialise, startBox } from './materialise.ts';
import { MemoryDeaths } from './memory-deaths.ts';
import type { BoxEvent, BoxState } from './ports.ts';
import { Presence } from './presence.ts';
import type { ExecRecord, SandboxRecord } from './records.ts';
import { SandboxExecs } from './sandbox-execs.ts';
import { sandboxView } from './sandbox-view.ts';
import { verifyBox } from './verify.ts';
import type { SandboxWorld } from './world.ts';

const clientAbsenceMs = 10_000;
const probeTimeoutMs = 3000;
/** A probe that succeeded is believed for this long. */
const probeFreshMs = 3000;
const stopGraceMs = 5000;

export interface SandboxParts {
  readonly record: SandboxRecord;
  readonly execs: readonly ExecRecord[];
  /** It is gone for good. */
  readonly removed: (sandbox: Sandbox) => void;
}

export class Sandbox {
  readonly #world: SandboxWorld;
  readonly #parts: SandboxParts;
  readonly #turns = new Serial();
  readonly #execs: SandboxExecs;
  readonly #memory = new MemoryDeaths();
  readonly #clients: Presence;
  readonly #life: LifeWatch;
  readonly #abort = new AbortController();
  #record: SandboxRecord;
  #link: BoxLink | undefined;
  #made: Promise<void> | undefined;
  #removing: Promise<void> | undefined;
  #probedMs = Number.NEGATIVE_INFINITY;

  constructor(world: SandboxWorld, parts: SandboxParts) {
    this.#world = world;
    this.#parts = parts;
    this.#record = parts.record;
    const { name, image, isolation, plan } = parts.record;
    this.#execs = new SandboxExecs(
      {
        store: world.store,
        now: world.now,
        checkpoint: world.checkpoint,
        ranOutOfMemory: () => this.#memory.since(this.#link?.current?.files),
        where: `${isolation.engine} ${isolation.runtime} ${plan.profile} ${image}`,
        sandboxName: name,
        changed: (exec) => this.#onExecEnded(exec),
      },
      parts.execs,
    );
    this.#clients = new Presence(clientAbsenceMs, () => this.#onAbandoned());
    this.#life = new LifeWatch(parts.record, {
      alive: () => this.#execs.running.length > 0 || this.#clients.count > 0,
      over: (why) => this.#background(`stop ${name}`, this.#stopBecause(why)),
    });
  }

  get id(): SandboxId {
    return this.#record.id;
  }

  get name(): string {
    return this.#record.name;
  }

  get state(): SandboxState {
    return this.#record.state;
  }

  get record(): SandboxRecord {
    return this.#record;
  }

  view(): SandboxView {
    return sandboxView(this.#record, this.#execs.running.length);
  }

  /** The work that begins with a record in PENDING. Resolves or rejects with it; goes on without its caller (A13). */
  make(): Promise<void> {
    this.#made ??= this.#turns.run(() => this.#make());
    this.#made.catch(() => {});
    return this.#made;
  }

  async ready(): Promise<void> {
    await this.#made;
    if (this.state !== 'READY') throw refusal('use', this.#record);
  }

  async ensureRunning(): Promise<void> {
    await this.#settled();
    if (this.state === 'PAUSED') await this.resume();
    if (this.state === 'READY' && (await this.#answers())) return;
    if (this.state === 'READY') await this.#act('stop', () => this.#stop('it did not answer', stopGraceMs));
    await this.start();
  }

  async start(): Promise<void> {
    await this.#act('start', () => this.#start());
  }

  async stop(graceMs: number): Promise<void> {
    await this.#act('stop', () => this.#stop(undefined, graceMs));
  }

  async pause(): Promise<void> {
    await this.#act('pause', async () => {
      await this.#world.engine.pause(this.#boxId());
      this.#transition('PAUSED');
    });
  }

  async resume(): Promise<void> {
    await this.#act('resume', async () => {
      await this.#world.engine.unpause(this.#boxId());
      this.#transition('READY');
      if (this.#link === undefined) await this.#connect();
    });
  }

  /** Idempotent. Runs to its end whatever the caller does (A13). */
  async remove(_options: { readonly force: boolean }): Promise<void> {
    this.#abort.abort(new SallyportError('cancelled', `sandbox ${this.name} was removed while it was made`));
    this.#removing ??= this.#turns.run(() => this.#remove());
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
    const exec = this.#execs.start(porter, this.#record, body);
    this.#clients.watch();
    return exec;
  }

  execs(): readonly BoxExec[] {
    return this.#execs.all();
  }

  getExec(reference: string): BoxExec {
    return this.#execs.get(reference);
  }

  async files(): Promise<Files> {
    return (await this.#usable()).files;
  }

  async connect(target: SocketTarget, signal?: AbortSignal): Promise<Tunnel> {
    const porter = await this.#usable();
    return await porter.connect(target, signal === undefined ? {} : { signal });
  }

  async stats(): Promise<StatsView> {
    this.#refuseUnless('use');
    const stats = await this.#world.engine.stats(this.#boxId());
    return {
      at: this.#world.now(),
      memory_bytes: stats.memoryBytes,
      memory_limit_bytes: stats.memoryLimitBytes,
      cpu_seconds: stats.cpuSeconds,
      pids: stats.pids,
    };
  }

  async verify(): Promise<VerifyView> {
    const porter = await this.#usable();
    return await verifyBox(porter, this.#record);
  }

  hold(): () => void {
    return this.#clients.hold();
  }

  /** What the engine says happened. Most of it is known already, because it was done here. */
  onEngineEvent(event: BoxEvent): void {
    if (event.kind === 'out-of-memory') this.#memory.engineTold();
    if (
      event.kind === 'ended' ||
      event.kind === 'removed' ||
      event.kind === 'paused' ||
      event.kind === 'resumed'
    ) {
      this.#background(`reconcile ${this.name}`, this.reconcile());
    }
  }

  /** Makes this true again: what the engine has wins over what was remembered. */
  async reconcile(): Promise<void> {
    await this.#turns.run(() => this.#reconcile());
  }

  /** The daemon ends and the box goes on. */
  letGo(): void {
    this.#life.end();
    this.#clients.end();
    this.#link?.close();
  }

  async #make(): Promise<void> {
    this.#clients.watch();
    try {
      this.#link = await materialise(this.#world, this.#materialisation());
      this.#transition('READY');
    } catch (error) {
      await this.#failed(error);
      throw error;
    }
    this.#startCommand();
  }

  #materialisation(): Materialisation {
    return {
      record: () => this.#record,
      note: (news) => this.#note(news),
      linkTo: (boxId) => this.#newLink(boxId),
      tell: (event) => {
        this.#world.store.events.append({ type: 'sandbox.progress', sandbox_id: this.id, ...event });
      },
      signal: this.#abort.signal,
    };
  }

  async #failed(error: unknown): Promise<void> {
    const reason = error instanceof Error ? error.message : String(error);
    this.#forgetContainer();
    if (this.#abort.signal.aborted) return;
    this.#transition('FAILED', reason);
    if (this.#record.ephemeral) await this.#remove();
  }

  #startCommand(): void {
    const { command } = this.#record.spec;
    const porter = this.#link?.current;
    if (command === undefined || porter === undefined) return;
    this.#execs.start(
      porter,
      this.#record,
      {
        argv: command,
        envs: {},
        stdin: false,
        timeout_ms: 0,
        grace_ms: stopGraceMs,
        background: true,
        reason: 'the command of the sandbox',
      },
      { main: true },
    );
  }

  async #start(): Promise<void> {
    const { containerId } = this.#record;
    const state = containerId === undefined ? undefined : await this.#world.engine.find(containerId);
    this.#transition('PENDING', 'starting');
    try {
      this.#memory.reset();
      if (state === undefined) this.#link = await materialise(this.#world, this.#materialisation());
      else if (state.running) await this.#connect();
      else this.#link = await startBox(this.#world, this.#materialisation());
    } catch (error) {
      if (state === undefined) this.#forgetContainer();
      this.#transition('FAILED', error instanceof Error ? error.message : String(error));
      throw error;
    }
    this.#transition('READY');
    this.#startCommand();
  }

  async #stop(why: string | undefined, graceMs: number): Promise<void> {
    this.#transition('STOPPING', why);
    // The connection stays open: it brings the last output and how the commands ended.
    await this.#world.engine.stop(this.#boxId(), graceMs);
    this.#world.checkpoint('stop.stopped');
    await this.#boxEnded(why ?? 'stopped on request');
  }

  async #boxEnded(why: string): Promise<void> {
    this.#link?.close();
    this.#link = undefined;
    await this.#execs.lose(why);
    this.#transition('STOPPED', why);
  }

  async #stopBecause(why: string): Promise<void> {
    await this.#act('stop', () => this.#stop(why, stopGraceMs));
  }

  async #remove(): Promise<void> {
    if (this.state === 'DELETED') return;
    if (this.state !== 'DELETING') this.#transition('DELETING');
    const { engine, store, owner, checkpoint } = this.#world;
    checkpoint('remove.recorded');
    this.#link?.close();
    this.#link = undefined;
    const { containerId } = this.#record;
    if (containerId !== undefined) await engine.remove(containerId);
    else await removeByLabel(engine, owner, this.id);
    checkpoint('remove.container');
    await this.#execs.lose('it was removed');
    this.letGo();
    await store.remove(this.id);
    checkpoint('remove.store');
    this.#transition('DELETED');
    this.#parts.removed(this);
  }

  async #connect(): Promise<void> {
    const link = this.#newLink(this.#boxId());
    await link.connect(this.#abort.signal);
    this.#link = link;
  }

  #newLink(boxId: string): BoxLink {
    const link: BoxLink = new BoxLink(this.#world.engine, {
      boxId,
      token: Buffer.from(this.#record.token, 'hex'),
      nextEpoch: () => {
        this.#note({ epoch: this.#record.epoch + 1 });
        return this.#record.epoch;
      },
      connected: (porter) => this.#execs.resume(porter),
      lost: (error) => {
        if (this.#link === link) this.#background(`reconcile ${this.name}`, this.#lost(error));
      },
    });
    return link;
  }

  async #lost(error: SallyportError): Promise<void> {
    await this.#turns.run(async () => {
      this.#link = undefined;
      if (error.code !== 'porter_protocol') {
        await this.#reconcile();
        return;
      }
      // What breaks the protocol is not trusted with another connection.
      await this.#world.engine.stop(this.#boxId(), 0);
      await this.#execs.lose(error.message);
      this.#transition('FAILED', error.message);
    });
  }

  async #reconcile(): Promise<void> {
    const { state, containerId } = this.#record;
    if (state === 'DELETING') {
      await this.#remove();
      return;
    }
    if (state === 'DELETED' || state === 'FAILED') return;
    const found = containerId === undefined ? undefined : await this.#world.engine.find(containerId);
    if (state === 'PENDING') await this.#interrupted();
    else if (found === undefined) await this.#vanished();
    else if (found.status === 'paused') this.#transition('PAUSED', this.#record.reason);
    else if (found.running) await this.#runs();
    else if (state !== 'STOPPED') await this.#boxEnded(howItEnded(found));
  }

  /** Its daemon died while it was made: what there is of it is taken away, and made again only if somebody asks. */
  async #interrupted(): Promise<void> {
    const { engine, owner } = this.#world;
    await removeByLabel(engine, owner, this.id);
    this.#forgetContainer();
    this.#transition('FAILED', 'the daemon ended while it was made');
    if (this.#record.ephemeral) await this.#remove();
  }

  async #vanished(): Promise<void> {
    this.#link?.close();
    this.#link = undefined;
    this.#forgetContainer();
    await this.#execs.lose('its container was removed from outside');
    this.#transition('FAILED', 'its container was removed from outside');
  }

  async #runs(): Promise<void> {
    // A link that lost its stream is on its way back, or says that it gave up.
    if (this.#link === undefined) await this.#connect();
    if (this.state !== 'READY') this.#transition('READY');
    this.#clients.watch();
  }

  async #usable(): Promise<Porter> {
    await this.#settled();
    this.#refuseUnless('use');
    this.#life.touch();
    if (!(await this.#answers())) {
      throw new SallyportError('sandbox_state', `sandbox ${this.name} does not answer`, {
        details: { sandbox: this.name, state: this.state },
        advice: `\`sally stop ${this.name}\` and \`sally start ${this.name}\` make it anew.`,
      });
    }
    const porter = this.#link?.current;
    if (porter === undefined) throw refusal('use', this.#record);
    return porter;
  }

  /** Cheap enough for every call: a round trip, and none if one was made a moment ago (G2). */
  async #answers(): Promise<boolean> {
    const link = this.#link;
    if (link === undefined) return false;
    if (link.current !== undefined && performance.now() - this.#probedMs < probeFreshMs) return true;
    const late = new Promise<false>((resolve) => setTimeout(resolve, probeTimeoutMs, false).unref());
    const answer = link.porter().then(async (porter) => {
      await porter.ping();
      return true;
    });
    const answered = await Promise.race([answer.catch(() => false), late]);
    this.#probedMs = answered ? performance.now() : Number.NEGATIVE_INFINITY;
    return answered;
  }

  /** Until nothing is under way that would change its state. */
  async #settled(): Promise<void> {
    while (verdict('use', this.state) === 'wait') await this.#turns.run(async () => {});
  }

  #refuseUnless(action: Action): void {
    if (verdict(action, this.state) !== 'do') throw refusal(action, this.#record);
  }

  async #act(action: Action, work: () => Promise<void>): Promise<void> {
    await this.#turns.run(async () => {
      const decided = verdict(action, this.state);
      if (decided === 'nothing') return;
      if (decided !== 'do') throw refusal(action, this.#record);
      await work();
      this.#life.touch();
    });
  }

  #boxId(): string {
    const { containerId } = this.#record;
    if (containerId === undefined) throw refusal('use', this.#record);
    return containerId;
  }

  #forgetContainer(): void {
    const { containerId: _gone, ...rest } = this.#record;
    this.#record = rest;
  }

  #note(news: Partial<SandboxRecord>): void {
    this.#record = { ...this.#record, ...news };
    this.#world.store.save(this.#record);
  }

  #transition(to: SandboxState, reason?: string): void {
    const { state: from, name } = this.#record;
    if (from === to) return;
    const event = this.#world.store.events.append({
      type: 'sandbox.state',
      sandbox_id: this.id,
      name,
      from,
      to,
      ...(reason === undefined ? {} : { reason }),
    });
    const { reason: _before, ...rest } = this.#record;
    this.#record = {
      ...rest,
      state: to,
      sequence: event.sequence,
      ...(reason === undefined ? {} : { reason }),
      ...(to === 'READY' ? { startedAt: event.at } : {}),
      ...(to === 'STOPPED' || to === 'FAILED' ? { stoppedAt: event.at } : {}),
    };
    if (to !== 'DELETED') this.#world.store.save(this.#record);
    this.#probedMs = Number.NEGATIVE_INFINITY;
    if (to === 'READY') this.#life.begin();
    else if (to !== 'PENDING') this.#life.end();
  }

  #onExecEnded(exec: BoxExec): void {
    this.#life.touch();
    const { ephemeral, spec } = this.#record;
    if (ephemeral && spec.command !== undefined && exec.isMain) {
      this.#background(`remove ${this.name}`, this.remove({ force: true }));
    }
  }

  /** Nobody has been there for a while. Only an ephemeral sandbox belongs to its client. */
  #onAbandoned(): void {
    const { ephemeral, detached } = this.#record;
    const used = this.#execs.all().some((exec) => exec.held);
    if (!ephemeral || detached) return;
    if (used) this.#clients.watch();
    else this.#background(`remove ${this.name}`, this.remove({ force: true }));
  }

  #background(what: string, work: Promise<void>): void {
    work.catch((error: unknown) => this.#world.report(what, error));
  }
}

function howItEnded({ exitCode, oomKilled }: BoxState): string {
  return oomKilled ? 'it ran out of memory' : `its first process ended with ${exitCode}`;
}

/** Also one whose answer nobody received. */
async function removeByLabel(engine: SandboxWorld['engine'], owner: string, id: SandboxId): Promise<void> {
  const boxes = await engine.list(owner);
  const mine = boxes.filter(({ labels }) => labels[label.id] === id);
  await Promise.all(mine.map((box) => engine.remove(box.id)));
}
