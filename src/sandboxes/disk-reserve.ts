/**
 * Keeps the reserve of the engine's disk: decides at each sample whether a sandbox must stop for it, and which one.
 *
 * A decision waits for sizes for a bounded time. What is not measured by then is judged by what it wrote.
 */

import {
  chooseVictim,
  type DiskResource,
  type DiskSample,
  isReserveBreached,
  reserveOf,
  scarceResource,
} from '../policy/disk-limit.ts';
import type { DiskFigures, DiskSizes } from './disk-sizes.ts';
import type { WatchedSandbox } from './disk-watch.ts';
import type { DiskOver } from './records.ts';

export interface DiskReserveParts {
  readonly sizes: DiskSizes;
  readonly sample: () => Promise<DiskSample | undefined>;
  readonly report: (what: string, error: unknown) => void;
  readonly within: (ms: number) => AbortSignal;
  readonly isClosed: () => boolean;
  /** Never rejects. */
  readonly exceed: (sandbox: WatchedSandbox, over: DiskOver) => Promise<void>;
}

/** A decision waits this long for sizes. */
const decideMs = 5000;
/** So long may it take to measure all sandboxes when the disk begins to run low. */
const marksMs = 60_000;

export class DiskReserve {
  readonly #parts: DiskReserveParts;
  #check: Promise<void> | undefined;
  /** The free space when a sandbox was last stopped. */
  #lowest: Partial<Record<DiskResource, number>> = {};
  /** The free space at the marks that growth counts from. */
  #atMarks: Partial<Record<DiskResource, number>> = {};
  #marking: Partial<Record<DiskResource, Promise<void>>> = {};
  /** A sandbox is being stopped, and may still write. */
  #isStopping = false;

  constructor(parts: DiskReserveParts) {
    this.#parts = parts;
  }

  reset(): void {
    this.#lowest = {};
    this.#atMarks = {};
    this.#marking = {};
  }

  /** Returns at once. `before`: the previous sample. */
  check(watched: readonly WatchedSandbox[], sample: DiskSample, before: DiskSample | undefined): void {
    const soon = scarceResource(sample, 2);
    if (soon === undefined) {
      this.reset();
      return;
    }
    const scarce = scarceResource(sample);
    if (scarce === undefined) {
      this.#marking[soon] ??= this.#setMarks(watched, soon, sample);
      return;
    }
    this.#check ??= this.#decide(watched, scarce, { sample, before }).finally(() => {
      this.#check = undefined;
    });
  }

  /** The disk begins to run low: growth counts from now on. Never rejects. */
  async #setMarks(watched: readonly WatchedSandbox[], of: DiskResource, sample: DiskSample): Promise<void> {
    const { sizes, within } = this.#parts;
    const figures = await sizes.figures(idsOf(watched), of, within(marksMs));
    if (this.#lowest[of] !== undefined) return;
    sizes.setMarks(of, figures);
    this.#atMarks[of] = sample.free[of];
  }

  /** Never rejects. */
  async #decide(
    watched: readonly WatchedSandbox[],
    scarce: DiskResource,
    { sample, before = sample }: { readonly sample: DiskSample; readonly before: DiskSample | undefined },
  ): Promise<void> {
    if (this.#isStopping) return;
    const { sizes, within, isClosed, report, exceed } = this.#parts;
    const reserve = reserveOf(sample, scarce);
    const free = sample.free[scarce];
    if (!isReserveBreached(free, reserve, this.#lowest[scarce])) return;
    // Without marks the disk went from enough to less than the reserve in one step.
    const lost = scarce === 'bytes' ? (this.#atMarks.bytes ?? before.free.bytes) - free : 0;
    this.#lowest[scarce] = free;
    const figures = await sizes.figures(idsOf(watched), scarce, within(decideMs));
    // Nothing was measured then.
    if (isClosed()) return;
    const growths = watched.map((sandbox) => ({ id: sandbox, ...this.#growthOf(sandbox, scarce, figures) }));
    const victim = chooseVictim(growths, { reserve, lost });
    if (victim === undefined) {
      const why = new Error(`${free} ${scarce} are free, less than the reserve of ${Math.round(reserve)}`);
      report('find a sandbox that fills the disk', why);
      return;
    }
    const written = growths.find(({ id }) => id === victim.id)?.written ?? 0;
    sizes.setMarks(scarce, figures);
    this.#isStopping = true;
    void exceed(victim.id, {
      rule: 'reserve',
      of: scarce,
      limit: Math.round(reserve),
      used: victim.isByWrites ? written : this.#sizeOf(victim.id, scarce),
      free,
      ...(victim.isByWrites ? { estimated: true } : {}),
    }).finally(() => this.#stopped(scarce));
  }

  /** What the victim wrote until it ended is not held against others. */
  async #stopped(scarce: DiskResource): Promise<void> {
    const sample = await this.#parts.sample().catch(() => undefined);
    if (sample !== undefined) {
      this.#lowest[scarce] = sample.free[scarce];
      this.#atMarks[scarce] = sample.free[scarce];
    }
    this.#isStopping = false;
  }

  #sizeOf({ containers }: WatchedSandbox, of: DiskResource): number {
    return containers.reduce((sum, { boxId }) => sum + (this.#parts.sizes.get(boxId)?.size[of] ?? 0), 0);
  }

  /** Since the marks. Bytes written do not stand for a number of files. */
  #growthOf(
    { containers }: WatchedSandbox,
    of: DiskResource,
    figures: ReadonlyMap<string, DiskFigures>,
  ): { readonly growth: number | undefined; readonly written: number | undefined } {
    const parts = containers.map(({ boxId }) => {
      const { size, written } = figures.get(boxId) ?? {};
      const mark = this.#parts.sizes.get(boxId)?.mark ?? {};
      return { growth: since(mark[of], size), written: since(mark.written, written) };
    });
    const growth = sumOf(parts.map((part) => part.growth));
    return { growth, written: of === 'files' ? undefined : sumOf(parts.map((part) => part.written)) };
  }
}

const idsOf = (watched: readonly WatchedSandbox[]): readonly string[] =>
  watched.flatMap(({ containers }) => containers.map(({ boxId }) => boxId));

const since = (mark: number | undefined, now: number | undefined): number | undefined =>
  now === undefined ? undefined : now - (mark ?? now);

/** Undefined if one of them is. */
const sumOf = (numbers: readonly (number | undefined)[]): number | undefined =>
  numbers.reduce<number | undefined>(
    (sum, number) => (sum === undefined || number === undefined ? undefined : sum + number),
    0,
  );
