/**
 * The services of one sandbox: their network and containers, in the order in which they come to be and go.
 *
 * Required ones are started one after the other, and each must be healthy before the next; whatever of them fails is the
 * caller's failure. Optional ones are nobody's: they are made beside everything else, and how that ended is an event. It must
 * never let the value of a variable into an event, an error or a log.
 */

import { Serial } from '../lib/serial.ts';
import { primaryAlias, type WantedService, wantedServices } from '../policy/services.ts';
import type { Porter } from '../porter/porter.ts';
import { isSallyportError, SallyportError } from '../protocol/errors.ts';
import { label } from '../protocol/labels.ts';
import type { BoxEvent } from './ports.ts';
import type { RecordKeeper } from './record-keeper.ts';
import type { SandboxRecord } from './records.ts';
import type { Saga } from './saga.ts';
import type { SandboxExecs } from './sandbox-execs.ts';
import { makeServiceContainer, serviceHealth } from './service-container.ts';
import { untilHealthy } from './service-health.ts';
import { runHook } from './service-hooks.ts';
import { makeNetwork, reconnectAll } from './service-network.ts';
import { ServiceStates } from './service-states.ts';
import type { SandboxWorld, Tell } from './world.ts';

export interface ServicesParts {
  readonly keeper: RecordKeeper;
  readonly execs: SandboxExecs;
  /** Fires when the sandbox is to be removed. */
  readonly signal: AbortSignal;
}

const nothing: Tell = () => {};

export class BoxServices {
  readonly #world: SandboxWorld;
  readonly #parts: ServicesParts;
  readonly #wanted: readonly WantedService[];
  readonly #states: ServiceStates;
  readonly #events = new Serial();
  /** What is under way for optional ones, since the last start. */
  #run = new AbortController();
  #background: Promise<void>[] = [];

  constructor(world: SandboxWorld, parts: ServicesParts) {
    this.#world = world;
    this.#parts = parts;
    this.#wanted = wantedServices(parts.keeper.record.spec);
    this.#states = new ServiceStates(world, parts.keeper, this.#wanted);
  }

  get any(): boolean {
    return this.#wanted.length > 0;
  }

  /** What is there already is used. */
  async provideNetwork(saga: Saga): Promise<void> {
    if (!this.any) return;
    const { services, owner, checkpoint } = this.#world;
    const { keeper } = this.#parts;
    const known = keeper.record.network;
    const isThere = known !== undefined && (await services.networks(owner)).some(({ id }) => id === known.id);
    if (isThere) {
      saga.onFailure('the start of the services', () => this.stop(0));
      return;
    }
    // Of every service at once: what fails later takes all of it away.
    saga.onFailure('the services and their network', () => this.remove());
    const network = await makeNetwork(this.#world, keeper.record);
    checkpoint('create.network');
    keeper.note({ network });
    if (known !== undefined) await reconnectAll(services, keeper.record);
  }

  /** Of the required ones: an optional one that cannot even be made must not be in the way. */
  async provideContainers(tell: Tell): Promise<void> {
    for (const service of this.#required) await this.#provide(service, tell, this.#parts.signal);
    if (this.any) this.#world.checkpoint('create.services');
  }

  /** A8: one after the other, each healthy before the next. */
  async startRequired(): Promise<void> {
    const { signal } = this.#parts;
    for (const service of this.#required) {
      this.#states.note(service, { state: 'PENDING' });
      await this.#untilHealthy(service, signal);
      signal.throwIfAborted();
    }
    if (this.#required.length > 0) this.#world.checkpoint('create.healthy');
  }

  /** Beside everything else. */
  startOptional(): void {
    this.#run = new AbortController();
    for (const service of this.#optional) {
      this.#states.note(service, { state: 'PENDING' });
      this.#background.push(this.#optionalRun(service));
    }
  }

  /** When the sandbox itself answers: the hooks of the required ones, and then the word that they are ready. */
  async welcome(porter: Porter): Promise<void> {
    const { keeper, execs } = this.#parts;
    for (const service of this.#required) {
      for (const argv of service.post_start_on_primary ?? []) {
        await runHook({ porter, execs, record: keeper.record }, service.name, argv);
      }
    }
    if (this.#required.length > 0) this.#world.checkpoint('create.hooks');
    // One without a check is believed as soon as it runs: what ended since then has failed.
    for (const service of this.#required) await this.#untilHealthy(service, this.#parts.signal, 'as it is');
    for (const service of this.#required) await this.#states.ready(service);
  }

  /** After the sandbox itself has stopped. Idempotent. */
  async stop(graceMs: number): Promise<void> {
    if (!this.any) return;
    await this.#giveUp();
    for (const service of this.#wanted) {
      if (this.#states.of(service)?.state !== 'FAILED') this.#states.note(service, { state: 'STOPPED' });
    }
    await this.#each((id) => this.#world.engine.stop(id, graceMs));
  }

  async pause(): Promise<void> {
    await this.#eachRunning((id) => this.#world.engine.pause(id));
  }

  async unpause(): Promise<void> {
    await this.#eachRunning((id) => this.#world.engine.unpause(id));
  }

  /** After the sandbox's own container: a network goes when nothing is on it. Also what nobody wrote down. */
  async remove(): Promise<void> {
    if (!this.any) return;
    const { services, engine, owner } = this.#world;
    const { keeper } = this.#parts;
    await this.#giveUp();
    const mine = (object: { readonly labels: Readonly<Record<string, string>> }): boolean =>
      object.labels[label.id] === keeper.record.id;
    await Promise.all((await services.list(owner)).filter(mine).map(({ id }) => engine.remove(id)));
    await Promise.all(
      (await services.networks(owner)).filter(mine).map(({ id }) => services.removeNetwork(id)),
    );
    keeper.forgetServices();
  }

  /** What the engine has wins over what was remembered. `running`: whether the sandbox itself does. */
  async reconcile(running: boolean): Promise<void> {
    if (!this.any) return;
    if (!running) {
      await this.stop(0);
      return;
    }
    for (const service of this.#wanted) {
      const known = this.#states.of(service);
      // Its daemon ended before it was known how its start ended.
      if (known?.state === 'PENDING' && !service.required) this.#background.push(this.#optionalRun(service));
      if (known?.state === 'READY') await this.#states.look(service);
    }
  }

  /** Of one of its containers. Most of it is known already, because it was done here. */
  onEngineEvent({ boxId, kind }: BoxEvent): void {
    const service = this.#wanted.find((wanted) => this.#states.of(wanted)?.containerId === boxId);
    if (service === undefined || (kind !== 'ended' && kind !== 'removed')) return;
    this.#events
      .run(() => this.#states.look(service))
      .catch((error: unknown) => this.#world.report(`look at service ${service.name}`, error));
  }

  async containerOf(name: string): Promise<string> {
    const found = this.#states.of({ name })?.containerId;
    if (found !== undefined) return found;
    const { name: sandbox } = this.#parts.keeper.record;
    throw new SallyportError(
      'service_not_found',
      `sandbox ${sandbox} has no service ${JSON.stringify(name)}`,
      {
        details: { sandbox, service: name },
      },
    );
  }

  /** The daemon ends and they go on. */
  letGo(): void {
    this.#run.abort();
  }

  get #required(): readonly WantedService[] {
    return this.#wanted.filter(({ required }) => required);
  }

  get #optional(): readonly WantedService[] {
    return this.#wanted.filter(({ required }) => !required);
  }

  /** Its container, made if it is not there. */
  async #provide(service: WantedService, tell: Tell, signal: AbortSignal): Promise<string> {
    const { engine, store } = this.#world;
    const { keeper } = this.#parts;
    const known = this.#states.of(service)?.containerId;
    if (known !== undefined && (await engine.find(known)) !== undefined) return known;
    const made = await makeServiceContainer(this.#world, keeper.record, service, { tell, signal });
    this.#states.note(service, { containerId: made.id });
    if (made.capabilities.length > 0) {
      store.events.append({
        type: 'sandbox.note',
        sandbox_id: keeper.record.id,
        code: 'service_begins_as_root',
        message: `the image of service ${service.name} begins as root, so it keeps ${made.capabilities.join(', ')}`,
      });
    }
    return made.id;
  }

  /** `as it is`: it is neither started nor checked again, only looked at. */
  async #untilHealthy(service: WantedService, signal: AbortSignal, how?: 'as it is'): Promise<void> {
    const { engine } = this.#world;
    const id = await this.containerOf(service.name);
    if (how === undefined && (await engine.find(id))?.running !== true) await engine.start(id, signal);
    const { subject, times } = await serviceHealth(this.#world, service, id, signal);
    await untilHealthy(how === undefined ? subject : { ...subject, check: undefined }, times);
  }

  /** Never rejects. */
  async #optionalRun(service: WantedService): Promise<void> {
    const { signal } = this.#run;
    try {
      await this.#provide(service, nothing, signal);
      await this.#untilHealthy(service, signal);
      if (!signal.aborted) await this.#states.ready(service);
    } catch (error) {
      if (signal.aborted) return;
      try {
        this.#states.failed(service, error instanceof Error ? error.message : String(error));
        const id = this.#states.of(service)?.containerId;
        if (id !== undefined) await this.#world.engine.stop(id, 0);
      } catch (failure) {
        this.#world.report(`write down that service ${service.name} failed`, failure);
      }
    }
  }

  /** What is under way for optional ones ends, and leaves them as they are. */
  async #giveUp(): Promise<void> {
    this.#run.abort(new SallyportError('cancelled', 'the sandbox does not need its services any more'));
    await Promise.all(this.#background);
    this.#background = [];
  }

  async #each(act: (containerId: string) => Promise<void>): Promise<void> {
    const known = this.#parts.keeper.record.services ?? [];
    await Promise.all(
      known.flatMap(({ containerId }) => (containerId === undefined ? [] : [act(containerId)])),
    );
  }

  async #eachRunning(act: (containerId: string) => Promise<void>): Promise<void> {
    await this.#each(async (id) => {
      const state = await this.#world.engine.find(id);
      if (state?.running !== true) return;
      try {
        await act(id);
      } catch (error) {
        // It may end at any moment; then there is nothing to freeze.
        if (!isSallyportError(error) || (await this.#world.engine.find(id))?.running === true) throw error;
      }
    });
  }
}

/** The network that the box itself is made on. */
export function networkOf(
  record: Pick<SandboxRecord, 'spec' | 'containerName'>,
): { readonly name: string; readonly alias: string } | undefined {
  if (wantedServices(record.spec).length === 0) return undefined;
  return { name: record.containerName, alias: primaryAlias };
}
