/**
 * A sandbox's record. Every change of state is an event first, then on disk, and only then visible here. An end is the
 * exception: it has happened, also when the disk is full, and what is remembered of it is made true by the next start.
 */

import type { SandboxState } from '../protocol/states.ts';
import type { SandboxStore } from './ports.ts';
import type { SandboxRecord } from './records.ts';
import type { SandboxWorld } from './world.ts';

const atRest: ReadonlySet<SandboxState> = new Set(['STOPPED', 'FAILED', 'DELETING', 'DELETED']);
const ends: ReadonlySet<SandboxState> = new Set(['STOPPING', 'STOPPED', 'FAILED', 'DELETING', 'DELETED']);

type Stamp = Pick<SandboxRecord, 'sequence'> & { readonly at: string };

export class RecordKeeper {
  readonly #store: SandboxStore;
  /** Called after each change of state. */
  readonly #changed: (to: SandboxState) => void;
  readonly #report: (what: string, error: unknown) => void;
  #record: SandboxRecord;

  constructor(
    { store, report }: Pick<SandboxWorld, 'store' | 'report'>,
    record: SandboxRecord,
    changed: (to: SandboxState) => void,
  ) {
    this.#store = store;
    this.#report = report;
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
    const { containerId: _gone, isFilled: _filled, ...rest } = this.#record;
    this.#record = rest;
  }

  /** The same of services and their network. */
  forgetServices(): void {
    const { network: _network, services: _services, ...rest } = this.#record;
    this.#record = rest;
  }

  /** `cleanUp`: of the run that begins. */
  transition(to: SandboxState, reason?: string, cleanUp = this.#record.cleanUp): void {
    const { state: from, reason: _before, cleanUp: _run, ...rest } = this.#record;
    if (from === to) return;
    const why = reason === undefined ? {} : { reason };
    const { sequence, at } = this.#told(to, why);
    const record: SandboxRecord = {
      ...rest,
      // A clean-up lasts for one run.
      ...(cleanUp === undefined || atRest.has(to) ? {} : { cleanUp }),
      state: to,
      sequence,
      ...why,
      ...(to === 'READY' ? { startedAt: at, isFilled: true } : {}),
      ...(to === 'STOPPED' || to === 'FAILED' ? { stoppedAt: at } : {}),
    };
    // What is deleted has no place on disk any more.
    if (to !== 'DELETED') this.#write(to, () => this.#store.save(record));
    this.#record = record;
    this.#changed(to);
  }

  #told(to: SandboxState, why: Pick<SandboxRecord, 'reason'>): Stamp {
    const { id, name, state: from, sequence } = this.#record;
    const draft = { type: 'sandbox.state' as const, sandbox_id: id, name, from, to, ...why };
    return (
      this.#write(to, () => this.#store.events.append(draft)) ?? { sequence, at: new Date().toISOString() }
    );
  }

  /** Undefined: there was no room for it, and it is true all the same. */
  #write<T>(to: SandboxState, write: () => T): T | undefined {
    try {
      return write();
    } catch (error) {
      if (!ends.has(to)) throw error;
      this.#report(`write down that ${this.#record.name} is ${to}`, error);
      return undefined;
    }
  }
}
