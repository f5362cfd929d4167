/** How each service of a sandbox is: in its record, and as events. An event comes after what it tells is written down. */

import type { WantedService } from '../policy/services.ts';
import type { EventDraft } from '../protocol/events.ts';
import type { RecordKeeper } from './record-keeper.ts';
import type { ServiceRecord } from './records.ts';
import type { SandboxWorld } from './world.ts';

export class ServiceStates {
  readonly #world: SandboxWorld;
  readonly #keeper: RecordKeeper;
  readonly #wanted: readonly WantedService[];

  constructor(world: SandboxWorld, keeper: RecordKeeper, wanted: readonly WantedService[]) {
    this.#world = world;
    this.#keeper = keeper;
    this.#wanted = wanted;
  }

  /** Undefined: it was not begun yet. */
  of({ name }: Pick<WantedService, 'name'>): ServiceRecord | undefined {
    return this.#keeper.record.services?.find((service) => service.name === name);
  }

  note(service: WantedService, news: Partial<ServiceRecord>): void {
    const { name, required, image } = service;
    const { reason, ...kept } = this.of(service) ?? { name, required, image, state: 'PENDING' as const };
    // Why it failed goes with the failure.
    const why = reason !== undefined && news.state === undefined ? { reason } : {};
    const changed: ServiceRecord = { ...kept, ...why, ...news };
    const services = this.#wanted.flatMap((wanted) =>
      wanted.name === name ? changed : (this.of(wanted) ?? []),
    );
    this.#keeper.note({ services });
  }

  async ready(service: WantedService): Promise<void> {
    this.note(service, { state: 'READY' });
    const { name, required } = service;
    this.#tell({ type: 'service.ready', sandbox_id: this.#keeper.record.id, service: name, required });
    // The engine may have told of its end a moment ago, when it was none of a service that is ready.
    await this.look(service);
  }

  /** It did not become ready. */
  failed(service: WantedService, reason: string): void {
    this.#over('service.failed', service, reason);
  }

  #over(type: 'service.failed' | 'service.ended', service: WantedService, reason: string): void {
    this.note(service, { state: 'FAILED', reason });
    const { name, required } = service;
    this.#tell({ type, sandbox_id: this.#keeper.record.id, service: name, required, reason });
  }

  /** Whether one that was ready still runs. */
  async look(service: WantedService): Promise<void> {
    const known = this.of(service);
    if (known?.state !== 'READY' || known.containerId === undefined) return;
    const state = await this.#world.engine.find(known.containerId);
    if (state?.running === true || this.of(service)?.state !== 'READY') return;
    const how =
      state === undefined
        ? 'its container was removed'
        : state.oomKilled
          ? 'it ran out of memory'
          : `it ended with ${state.exitCode}`;
    this.#over('service.ended', service, `service ${service.name} is gone: ${how}`);
  }

  #tell(event: EventDraft): void {
    this.#world.store.events.append(event);
  }
}
