/** A sandbox's record. Every change of state is an event first, then on disk, and only then visible here. */

import type { SandboxState } from '../protocol/states.ts';
import type { SandboxStore } from './ports.ts';
import type { SandboxRecord } from './records.ts';

export class RecordKeeper {
  readonly #store: SandboxStore;
  /** Called after each change of state. */
  readonly #changed: (to: SandboxState) => void;
  #record: SandboxRecord;

  constructor(store: SandboxStore, record: SandboxRecord, changed: (to: SandboxState) => void) {
    this.#store = store;
    this.#record = record;
    this.#changed = changed;
  }

  get record(): SandboxRecord {
    return this.#record;
  }

  note(news: Partial<SandboxRecord>): void {
    this.#record = { ...this.#record, ...news };
    this.#store.save(this.#record);
  }

  /** There is none any more. It is written down with the next change of state. */
  forgetContainer(): void {
    const { containerId: _gone, ...rest } = this.#record;
    this.#record = rest;
  }

  transition(to: SandboxState, reason?: string): void {
    const { state: from, reason: _before, ...rest } = this.#record;
    if (from === to) return;
    const why = reason === undefined ? {} : { reason };
    const event = this.#store.events.append({
      type: 'sandbox.state',
      sandbox_id: rest.id,
      name: rest.name,
      from,
      to,
      ...why,
    });
    this.#record = {
      ...rest,
      state: to,
      sequence: event.sequence,
      ...why,
      ...(to === 'READY' ? { startedAt: event.at } : {}),
      ...(to === 'STOPPED' || to === 'FAILED' ? { stoppedAt: event.at } : {}),
    };
    // What is deleted has no place on disk any more.
    if (to !== 'DELETED') this.#store.save(this.#record);
    this.#changed(to);
  }
}
