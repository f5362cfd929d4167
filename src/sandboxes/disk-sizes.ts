/** What `DiskWatch` knows of each container: its last measurement, and the marks that its growth counts from. */

import { Slots } from '../lib/slots.ts';
import type { DiskResource, DiskSample, LastSize } from '../policy/disk-limit.ts';
import type { WatchedContainer } from './disk-watch.ts';
import type { BoxEngine, DiskUse } from './ports.ts';

export interface DiskEntry {
  readonly run: string;
  last?: LastSize;
  at?: Date;
  /** The first measurement of this run. */
  first?: number;
  /** Growth counts from here. */
  mark: Partial<Record<DiskResource | 'written', number>>;
  size: Partial<Record<DiskResource, number>>;
  /** The kernel limits everything that the container can write to. */
  isHeld?: boolean;
  /** A check of its limit is under way. */
  isChecking: boolean;
  /** Its sandbox is being stopped for it. */
  isOver: boolean;
}

export interface DiskSizesParts {
  readonly engine: Pick<BoxEngine, 'diskUse' | 'diskWritten'>;
  readonly sample: () => Promise<DiskSample | undefined>;
  readonly report: (what: string, error: unknown) => void;
}

/** What is known of a container at one moment. Absent: not measured in time, or not known. */
export interface DiskFigures {
  readonly size?: number;
  readonly written?: number;
}

const atOnce = 4;

export class DiskSizes {
  readonly #parts: DiskSizesParts;
  readonly #entries = new Map<string, DiskEntry>();

  constructor(parts: DiskSizesParts) {
    this.#parts = parts;
  }

  get(boxId: string): DiskEntry | undefined {
    return this.#entries.get(boxId);
  }

  /** Adds entries for new runs and drops those of containers that neither run nor are paused. */
  track(containers: readonly WatchedContainer[], before: DiskSample | undefined): void {
    const present = new Set<string>();
    for (const { boxId, isFresh, run } of containers) {
      present.add(boxId);
      if (this.#entries.get(boxId)?.run === run) continue;
      const entry: DiskEntry = { run, mark: {}, size: {}, isChecking: false, isOver: false };
      if (isFresh) entry.mark = { bytes: 0, files: 0, written: 0 };
      // The container did not exist at the previous sample, so the disk has lost what it wrote. Otherwise it is measured.
      if (isFresh && before !== undefined) entry.last = lastOf(0, 0, before);
      this.#entries.set(boxId, entry);
    }
    for (const boxId of this.#entries.keys()) if (!present.has(boxId)) this.#entries.delete(boxId);
  }

  async measure(boxId: string, of: DiskResource, signal: AbortSignal): Promise<DiskUse> {
    const beganMs = performance.now();
    // Before the walk: data written during the walk must count for the next decision.
    const sample = await this.#parts.sample();
    const entry = this.#entries.get(boxId);
    const use = await this.#parts.engine.diskUse(boxId, { of, signal });
    if (entry === undefined) return use;
    entry.size[of] = use.amount;
    entry.mark[of] ??= use.amount;
    if (of === 'bytes') {
      entry.first ??= use.amount;
      entry.last = lastOf(use.amount, performance.now() - beganMs, sample);
      entry.at = new Date();
    }
    return use;
  }

  /** A measurement that began at `beganMs` did not succeed. What was known before stays the base of estimates. */
  missed(boxId: string, how: 'late' | 'failed', beganMs: number, sample: DiskSample | undefined): void {
    const entry = this.#entries.get(boxId);
    if (entry === undefined) return;
    entry.last = {
      ...(entry.last ?? lastOf(0, 0, sample)),
      atMs: performance.now(),
      tookMs: performance.now() - beganMs,
      missed: how,
    };
  }

  /** Measures all of them, a few at a time, until `signal` fires. */
  async figures(
    boxIds: readonly string[],
    of: DiskResource,
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, DiskFigures>> {
    const slots = new Slots(atOnce);
    const found = await Promise.all(
      boxIds.map(async (boxId) => {
        const [size, written] = await Promise.all([
          slots.run(() => this.#amount(boxId, of, signal)),
          this.#written(boxId, signal),
        ]);
        const figures: DiskFigures = {
          ...(size === undefined ? {} : { size }),
          ...(written === undefined ? {} : { written }),
        };
        return [boxId, figures] as const;
      }),
    );
    return new Map(found);
  }

  /** Growth counts from these figures on. */
  setMarks(of: DiskResource, figures: ReadonlyMap<string, DiskFigures>): void {
    for (const [boxId, { size, written }] of figures) {
      const entry = this.#entries.get(boxId);
      if (entry === undefined) continue;
      if (size !== undefined) entry.mark[of] = size;
      if (written !== undefined) entry.mark.written = written;
    }
  }

  /** Once in a run, near its start. */
  async markWritten(boxId: string, signal: AbortSignal): Promise<void> {
    if (this.#entries.get(boxId)?.mark.written === undefined) await this.#written(boxId, signal);
  }

  async #amount(boxId: string, of: DiskResource, signal: AbortSignal): Promise<number | undefined> {
    try {
      signal.throwIfAborted();
      const { amount, isComplete } = await this.measure(boxId, of, signal);
      return isComplete ? amount : undefined;
    } catch (error) {
      if (!signal.aborted) this.#parts.report(`measure the disk usage of ${boxId}`, error);
      return undefined;
    }
  }

  async #written(boxId: string, signal: AbortSignal): Promise<number | undefined> {
    try {
      const written = await this.#parts.engine.diskWritten(boxId, signal);
      const entry = this.#entries.get(boxId);
      if (entry !== undefined && written !== undefined) entry.mark.written ??= written;
      return written;
    } catch (error) {
      if (!signal.aborted) this.#parts.report(`read what ${boxId} wrote`, error);
      return undefined;
    }
  }
}

export function lastOf(bytes: number, tookMs: number, sample: DiskSample | undefined): LastSize {
  return {
    bytes,
    tookMs,
    atMs: performance.now(),
    ...(sample === undefined ? {} : { freeBytes: sample.free.bytes }),
  };
}
