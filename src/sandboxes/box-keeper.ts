/**
 * The box behind a sandbox: makes it, starts it, connects to it, stops it, removes it, and keeps the record true to it.
 *
 * It asks nobody whether it may, and it knows no queue: whoever calls makes sure that one call is over before the next.
 */

import { unlessAborted } from '../lib/unless-aborted.ts';
import { noticeKind } from '../porter/link.ts';
import { gateFolder } from '../protocol/box.ts';
import { SallyportError } from '../protocol/errors.ts';
import { label } from '../protocol/labels.ts';
import type { SandboxState } from '../protocol/states.ts';
import { BoxLink } from './box-link.ts';
import { BoxServices } from './box-services.ts';
import { diskReason } from './disk-error.ts';
import { gateClient } from './gate-client.ts';
import { isReplaceable, keptPlan } from './kept-container.ts';
import { LenderStarts } from './lender-starts.ts';
import { type Materialisation, materialise, startBox } from './materialise.ts';
import type { MemoryDeaths } from './memory-deaths.ts';
import type { BoxGate, BoxState } from './ports.ts';
import type { RecordKeeper } from './record-keeper.ts';
import type { DiskOver, SandboxRecord } from './records.ts';
import { renewedPlan } from './renewed-plan.ts';
import type { RuntimeChecks } from './runtime-checks.ts';
import { diskErrorOf } from './sandbox-disk.ts';
import type { SandboxExecs } from './sandbox-execs.ts';
import { SocketForwards, wantsAgent } from './socket-forwards.ts';
import { removeStubs, type StubTurns } from './stubs.ts';
import type { SandboxWorld } from './world.ts';

const mainGraceMs = 5000;
const mayRun: ReadonlySet<SandboxState> = new Set(['PENDING', 'READY', 'PAUSED', 'STOPPING']);

export interface KeeperParts {
  readonly keeper: RecordKeeper;
  readonly execs: SandboxExecs;
  readonly memory: MemoryDeaths;
  readonly stubs: StubTurns;
  readonly runtimes: RuntimeChecks;
  /** Rejects if the copied files exceed the disk limit. */
  readonly requireDisk: () => Promise<void>;
  /** Fires when the sandbox is to be removed: then nothing more is made. */
  readonly signal: AbortSignal;
  /** The connection is gone for good. Called outside of any turn. */
  readonly lost: (error: SallyportError) => void;
}

export interface Reconciling {
  /** Is given the last step, which takes longest, to do. */
  readonly connecting?: (work: () => Promise<void>) => Promise<void>;
  /** What may explain an end that nobody saw. */
  readonly meanwhile?: string;
}

export class BoxKeeper {
  readonly #world: SandboxWorld;
  readonly #parts: KeeperParts;
  readonly #forwards: SocketForwards;
  readonly services: BoxServices;
  readonly #lenders: LenderStarts;
  #link: BoxLink | undefined;
  #gate: BoxGate | undefined;

  constructor(world: SandboxWorld, parts: KeeperParts) {
    this.#world = world;
    this.#parts = parts;
    const { keeper } = parts;
    this.services = new BoxServices(world, parts);
    this.#lenders = new LenderStarts({
      engine: world.engine,
      now: () => performance.now(),
      report: (error) => {
        world.report(`start the lender of ${keeper.record.name}`, error);
        this.tell('lender_missing', lenderMissing);
      },
    });
    this.#forwards = new SocketForwards({
      record: () => keeper.record,
      agent: world.sshAgent,
      note: (code, message) => {
        world.store.events.append({ type: 'sandbox.note', sandbox_id: keeper.record.id, code, message });
      },
      report: (what, error) => world.report(`${what} of ${keeper.record.name}`, error),
    });
  }

  /** Where the spec asks for one. Made when it is first needed: after a restart of the daemon nobody made the box. */
  get gate(): BoxGate | undefined {
    const { keeper } = this.#parts;
    if (keeper.record.plan.egress !== true || keeper.record.cleanUp !== undefined) return undefined;
    this.#gate ??= this.#world.gate.open(gateClient(this.#world, keeper));
    return this.#gate;
  }

  get link(): BoxLink | undefined {
    return this.#link;
  }

  /** From a record in PENDING. `beforeStart` is waited for before anything runs inside. */
  async make(beforeStart: Promise<void>): Promise<void> {
    const { keeper, signal } = this.#parts;
    try {
      this.#link = await materialise(this.#world, { ...this.#materialisation(), beforeStart });
      await this.#settleForListeners();
      this.#requireWithinDisk();
      this.#ready();
    } catch (error) {
      const failure = diskErrorOf(keeper.record) ?? error;
      await this.#unmake();
      keeper.forgetContainer();
      await this.#removeStubs();
      if (!signal.aborted) {
        keeper.transition('FAILED', reasonOf(failure));
        if (keeper.record.ephemeral) await this.remove();
      }
      throw failure;
    }
    this.#startCommand();
  }

  /** From a box that was stopped, or that somebody took away. `cleanUp`: without command, services and gate. */
  async start(cleanUp?: SandboxRecord['cleanUp']): Promise<void> {
    const { keeper, memory } = this.#parts;
    const found = await this.#startable(cleanUp);
    keeper.transition('PENDING', 'starting', cleanUp);
    memory.reset();
    try {
      if (found === undefined) this.#link = await materialise(this.#world, this.#materialisation());
      else if (found.running) await this.#rejoin();
      else this.#link = await startBox(this.#world, this.#materialisation());
      await this.#settleForListeners();
      this.#requireWithinDisk();
      this.#ready();
    } catch (error) {
      if (found === undefined) await this.#unmake();
      else await this.#standDown();
      const failure = diskErrorOf(keeper.record) ?? error;
      if (found === undefined) keeper.forgetContainer();
      await this.#removeStubs();
      keeper.transition('FAILED', reasonOf(failure));
      throw failure;
    }
    this.#startCommand();
  }

  /** It runs although nobody knew. */
  async #rejoin(): Promise<void> {
    const { services } = this;
    if (this.#parts.keeper.record.cleanUp !== undefined) {
      await services.stop(0);
      await this.connect();
      return;
    }
    await services.provideContainers(() => {});
    services.startOptional();
    await services.startRequired();
    await this.connect();
    const porter = this.#link?.current;
    if (porter !== undefined) await services.welcome(porter);
  }

  /**
   * SECURITY: `haltOverDisk` may have come before the container ran, and so have stopped nothing. A sandbox with `overDisk` is not watched, so
   * it must not become READY.
   */
  #requireWithinDisk(): void {
    const over = diskErrorOf(this.#parts.keeper.record);
    if (over !== undefined) throw over;
  }

  /** A start that failed leaves nothing that runs. A container without a link was stopped already, or never ran. */
  async #standDown(): Promise<void> {
    const isLinked = this.#link !== undefined;
    this.drop();
    if (!isLinked && !this.services.any) return;
    await this.#world.engine.stop(this.boxId(), 0);
    await this.services.stop(0);
  }

  /**
   * The container to start; undefined: `start` makes another. One that cannot start with what the host has now is removed, unless it holds
   * what exists nowhere else: then placeholders are planned, or it throws and nothing has changed.
   */
  async #startable(cleanUp: SandboxRecord['cleanUp']): Promise<BoxState | undefined> {
    const { keeper } = this.#parts;
    const { engine } = this.#world;
    const { containerId } = keeper.record;
    const known = containerId === undefined ? undefined : await engine.find(containerId);
    const found = keeper.record.isFilled === true ? known : undefined;
    if (containerId !== undefined && found === undefined) {
      // One that was not filled is left of a start that failed, and could not be removed then.
      if (known !== undefined) await engine.remove(containerId);
      keeper.forgetContainer();
    }
    const renewed = await renewedPlan(keeper.record);
    if (renewed === undefined) return found;
    if (found !== undefined && !isReplaceable(keeper.record, cleanUp)) {
      if (!found.running) keeper.note({ plan: keptPlan(keeper.record, renewed) });
      return found;
    }
    if (containerId !== undefined && found !== undefined) await engine.remove(containerId);
    keeper.forgetContainer();
    keeper.note({ plan: renewed.plan });
    this.tell(renewed.code, renewed.message);
    return undefined;
  }

  tell(code: string, message: string): void {
    const { id } = this.#parts.keeper.record;
    this.#world.store.events.append({ type: 'sandbox.note', sandbox_id: id, code, message });
  }

  async #settleForListeners(): Promise<void> {
    const { plan } = this.#parts.keeper.record;
    if (wantsAgent(plan) || plan.egress === true) await this.#link?.settleNow();
    const { gate } = this;
    const porter = await this.#link?.porter();
    if (porter === undefined || gate === undefined) return;
    // A box that ran before may not answer, and a removal must not wait for it.
    const { signal } = this.#parts;
    const preparing = gate.prepare(porter, `${plan.user.home}/${gateFolder}`, signal);
    this.#parts.keeper.note({ gateEnv: await unlessAborted(preparing, signal) });
    await gate.probe(porter);
  }

  #ready(): void {
    this.#parts.keeper.transition('READY');
    this.#link?.settle();
  }

  /** It was made, and then there was no room to write that down. */
  async #unmake(): Promise<void> {
    if (this.#link === undefined) return;
    this.drop();
    await this.#world.engine.remove(this.boxId());
    await this.services.remove();
  }

  async connect(): Promise<void> {
    const link = this.#newLink(this.boxId());
    // Before it is there: it may be lost as soon as it is, and then nobody may think that it is not ours.
    this.#link = link;
    try {
      await link.connect(this.#parts.signal);
    } catch (error) {
      if (this.#link === link) this.#link = undefined;
      throw error;
    }
  }

  async stop(why: string | undefined, graceMs: number): Promise<void> {
    const { keeper } = this.#parts;
    const { state: before } = keeper.record;
    keeper.transition('STOPPING', why);
    try {
      // The connection stays open: it brings the last output and how the commands ended.
      await this.#link?.stay();
      await this.#world.engine.stop(this.boxId(), graceMs);
      await this.services.stop(graceMs);
      this.#world.checkpoint('stop.stopped');
      await this.#ended(why ?? 'stopped on request');
    } catch (error) {
      const isStopped = await this.#rest(before === 'PAUSED' ? 'PAUSED' : 'READY', why);
      if (!isStopped) throw error;
    }
  }

  /**
   * After a stop that failed: the state becomes what the engine has, or what it was if the engine cannot be asked. True: the sandbox has
   * stopped all the same.
   */
  async #rest(before: 'READY' | 'PAUSED', why: string | undefined): Promise<boolean> {
    const { keeper } = this.#parts;
    let rest: SandboxState = before;
    try {
      const found = await this.#world.engine.find(this.boxId());
      if (found === undefined) await this.#vanished();
      else if (found.status === 'paused') rest = 'PAUSED';
      else if (found.running) {
        rest = 'READY';
        if (this.#link === undefined) await this.connect();
      } else {
        rest = 'STOPPED';
        await this.#ended(why ?? howItEnded(found, undefined));
      }
    } catch (error) {
      this.#world.report(`look at ${keeper.record.name} after a stop that failed`, error);
    }
    if (keeper.record.state !== 'STOPPING') return true;
    keeper.transition(rest, rest === 'STOPPED' ? why : undefined);
    return false;
  }

  /**
   * Stops the sandbox for its disk usage, without a grace period. The record comes first, so that the next daemon stops it if this one dies.
   * Execs end before the stop; otherwise they would end with the signal of the stop.
   */
  async stopOverDisk(over: DiskOver): Promise<void> {
    const { keeper, execs } = this.#parts;
    this.#noteOverDisk(over);
    const reason = diskReason(over);
    const { cleanUp: _, ...stopped } = keeper.record;
    const error = diskErrorOf(stopped) ?? new SallyportError('disk_limit_exceeded', reason);
    await this.#reported(execs.end(error));
    this.drop();
    await this.#orWatched(() => this.stop(reason, 0));
  }

  /** A sandbox with `overDisk` is not watched. If it runs on because its stop failed, the next measurement must stop it. */
  async #orWatched(stop: () => Promise<void>): Promise<void> {
    const { keeper } = this.#parts;
    try {
      await stop();
    } catch (error) {
      if (mayRun.has(keeper.record.state)) keeper.note({ overDisk: undefined });
      throw error;
    }
  }

  /** The same during a create or start, which fails as soon as the container has ended. */
  async haltOverDisk(over: DiskOver): Promise<void> {
    this.#noteOverDisk(over);
    const { containerId } = this.#parts.keeper.record;
    await this.#orWatched(async () => {
      if (containerId !== undefined) await this.#world.engine.stop(containerId, 0);
      await this.services.stop(0);
    });
  }

  #noteOverDisk(over: DiskOver): void {
    const { keeper } = this.#parts;
    const { store, checkpoint, report } = this.#world;
    try {
      keeper.note({ overDisk: over });
      checkpoint('disk.noted');
      store.events.append({ type: 'disk.exceeded', sandbox_id: keeper.record.id, ...over });
    } catch (error) {
      // The state folder may be on the same full disk. The stop is what counts.
      report(`record the disk usage of ${keeper.record.name}`, error);
    }
  }

  async pause(): Promise<void> {
    await this.#link?.stay();
    await this.#world.engine.pause(this.boxId());
    await this.services.pause();
    this.#parts.keeper.transition('PAUSED');
  }

  async unpause(): Promise<void> {
    await this.services.unpause();
    await this.#world.engine.unpause(this.boxId());
    if (this.#link === undefined) await this.connect();
    this.#ready();
  }

  async remove(): Promise<void> {
    const { keeper, execs } = this.#parts;
    const { engine, store, owner, checkpoint } = this.#world;
    if (keeper.record.state === 'DELETED') return;
    keeper.transition('DELETING');
    checkpoint('remove.recorded');
    this.drop();
    const { id, containerId } = keeper.record;
    if (containerId !== undefined) await engine.remove(containerId);
    else await removeByLabel(engine, owner, id);
    checkpoint('remove.container');
    await this.services.remove();
    if (this.services.any) checkpoint('remove.services');
    await this.#removeStubs();
    await execs.lose('it was removed');
    this.gate?.forget();
    await store.remove(id);
    checkpoint('remove.store');
    keeper.transition('DELETED');
  }

  /** What breaks the protocol is not trusted with another connection. One that was stopped meanwhile has none. */
  async distrust(error: SallyportError): Promise<void> {
    this.drop();
    if (!mayRun.has(this.#parts.keeper.record.state)) return;
    await this.#world.engine.stop(this.boxId(), 0);
    await this.services.stop(0);
    await this.#parts.execs.lose(error.message);
    await this.#removeStubs();
    this.#parts.keeper.transition('FAILED', error.message);
  }

  /** What the engine has wins over what was remembered. */
  async reconcile({ connecting = doAtOnce, meanwhile }: Reconciling = {}): Promise<void> {
    const { keeper } = this.#parts;
    const { state, containerId, reason } = keeper.record;
    if (state === 'FAILED') await this.#removeStubs();
    if (state === 'DELETED' || state === 'FAILED') return;
    if (state === 'DELETING') {
      await this.remove();
      return;
    }
    if (state === 'PENDING') {
      await this.#interrupted();
      return;
    }
    const found = containerId === undefined ? undefined : await this.#world.engine.find(containerId);
    if (found === undefined) await this.#vanished();
    else if (found.status === 'paused') keeper.transition('PAUSED', reason);
    else if (found.running) await this.#runs(connecting);
    else if (state !== 'STOPPED') await this.#ended(howItEnded(found, meanwhile));
    else await this.#rests();
  }

  async #rests(): Promise<void> {
    await this.services.reconcile(false);
    await this.#removeStubs();
  }

  /** The box goes on without us. */
  drop(): void {
    this.#link?.close();
    this.#link = undefined;
    this.#gate?.close();
  }

  boxId(): string {
    const { containerId, name } = this.#parts.keeper.record;
    if (containerId !== undefined) return containerId;
    throw new SallyportError('sandbox_state', `sandbox ${name} has no container`, {
      details: { sandbox: name },
    });
  }

  async #ended(why: string): Promise<void> {
    const { keeper, execs } = this.#parts;
    const { overDisk } = keeper.record;
    const error = diskErrorOf(keeper.record);
    this.drop();
    await this.services.reconcile(false);
    await this.#reported(error === undefined ? execs.lose(why) : execs.end(error));
    await this.#removeStubs();
    keeper.transition('STOPPED', error === undefined || overDisk === undefined ? why : diskReason(overDisk));
  }

  /**
   * The previous daemon died during a create or start. A container that was not filled yet is removed. A filled one stays: it holds what
   * the sandbox wrote before.
   */
  async #interrupted(): Promise<void> {
    const { keeper, execs } = this.#parts;
    const { engine, owner } = this.#world;
    const { isFilled, containerId } = keeper.record;
    if (isFilled === true && containerId !== undefined && (await engine.find(containerId)) !== undefined) {
      await engine.stop(containerId, 0);
      await this.services.stop(0);
      await this.#removeStubs();
      await execs.lose('the daemon ended while it was started');
      keeper.transition('FAILED', 'the daemon ended while it was started');
      return;
    }
    await removeByLabel(engine, owner, keeper.record.id);
    await this.services.remove();
    keeper.forgetContainer();
    await this.#removeStubs();
    await execs.lose('the daemon ended while it was started');
    keeper.transition('FAILED', 'the daemon ended while it was made');
    if (keeper.record.ephemeral) await this.remove();
  }

  /** The stop is what counts, also where the end of an exec cannot be written down. */
  async #reported(ending: Promise<void>): Promise<void> {
    await ending.catch((error: unknown) => {
      this.#world.report(`end the execs of ${this.#parts.keeper.record.name}`, error);
    });
  }

  async #vanished(): Promise<void> {
    const why = 'its container was removed from outside';
    this.drop();
    this.#parts.keeper.forgetContainer();
    await this.services.remove();
    await this.#removeStubs();
    await this.#parts.execs.lose(why);
    this.#parts.keeper.transition('FAILED', why);
  }

  async #runs(connecting: (work: () => Promise<void>) => Promise<void>): Promise<void> {
    const { keeper } = this.#parts;
    const { overDisk, cleanUp } = keeper.record;
    if (overDisk !== undefined && cleanUp === undefined) {
      // The previous daemon ended between the decision and the stop.
      await this.stop(diskReason(overDisk), 0);
      return;
    }
    // A link that lost its stream is on its way back, or says that it gave up.
    if (this.#link === undefined) await connecting(() => this.connect());
    await this.services.reconcile(cleanUp === undefined);
    keeper.transition('READY');
  }

  /** Only when the box does not run: they are what its protection is mounted on. */
  async #removeStubs(): Promise<void> {
    const { keeper, stubs } = this.#parts;
    const { containerId, stubs: made = [] } = keeper.record;
    if (made.length === 0) return;
    try {
      const found = containerId === undefined ? undefined : await this.#world.engine.find(containerId);
      const stopped = found?.running === true ? undefined : containerId;
      await removeStubs(keeper.record, stubs, stopped, (left) => keeper.note({ stubs: left }));
    } catch (error) {
      this.#world.report(`take the stubs of ${keeper.record.name} away`, error);
    }
  }

  #materialisation(): Materialisation {
    const { keeper, signal, stubs, runtimes, requireDisk } = this.#parts;
    return {
      requireDisk,
      record: () => keeper.record,
      note: (news) => keeper.note(news),
      linkTo: (boxId) => this.#newLink(boxId),
      stubs,
      runtimes,
      services: this.services,
      tell: (event) => {
        const { id } = keeper.record;
        this.#world.store.events.append({ type: 'sandbox.progress', sandbox_id: id, ...event });
      },
      signal,
    };
  }

  #newLink(boxId: string): BoxLink {
    const { keeper, execs, lost } = this.#parts;
    const link: BoxLink = new BoxLink(this.#world.engine, {
      boxId,
      token: Buffer.from(keeper.record.token, 'hex'),
      nextEpoch: () => {
        keeper.note({ epoch: keeper.record.epoch + 1 });
        return keeper.record.epoch;
      },
      connected: async (porter) => {
        porter.onNotice(({ kind }) => {
          const { lender } = keeper.record.plan;
          if (kind === noticeKind.lenderWanted && lender !== undefined)
            void this.#lenders.wanted(boxId, lender);
        });
        await execs.resume(porter);
        await this.#forwards.connected(porter);
        await this.gate?.connected(porter);
      },
      report: (what, error) => this.#world.report(`${what} of ${keeper.record.name}`, error),
      lost: (error) => {
        if (this.#link !== link) return;
        this.#link = undefined;
        lost(error);
      },
    });
    return link;
  }

  /** The sandbox's own command, anew at each start. */
  #startCommand(): void {
    const { keeper, execs } = this.#parts;
    const { spec, cleanUp } = keeper.record;
    const { command } = spec;
    const porter = this.#link?.current;
    if (command === undefined || porter === undefined || cleanUp !== undefined) return;
    const body = {
      argv: command,
      envs: {},
      stdin: false,
      timeout_ms: 0,
      grace_ms: mainGraceMs,
      background: true,
      reason: 'the command of the sandbox',
    };
    execs.start(porter, keeper.record, body, { main: true });
  }
}

const lenderMissing =
  'the process that lends epoll and inotify instances could not be started: programs that need one fail with EMFILE';

const doAtOnce = (work: () => Promise<void>): Promise<void> => work();

const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** What porter answers with when it is asked from outside to end, and what a kill looks like. */
const outside: Readonly<Record<number, string>> = {
  143: 'the engine or its user told it to end',
  137: 'the engine, its user or the kernel killed it',
  // What an engine says of a box that ended while the engine was not there.
  255: 'the engine was away',
};

function howItEnded({ exitCode, oomKilled }: BoxState, meanwhile: string | undefined): string {
  if (oomKilled) return 'it ran out of memory';
  const ending = `its first process ended with ${exitCode}`;
  const why = meanwhile ?? outside[exitCode];
  return why === undefined ? ending : `${why}: ${ending}`;
}

/** Also one whose answer nobody received. */
async function removeByLabel(engine: SandboxWorld['engine'], owner: string, id: string): Promise<void> {
  const boxes = await engine.list(owner);
  const mine = boxes.filter(({ labels }) => labels[label.id] === id);
  await Promise.all(mine.map((box) => engine.remove(box.id)));
}
