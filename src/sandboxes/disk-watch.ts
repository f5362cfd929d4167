/**
 * Watches the disk that sandboxes write to, from outside. While a sandbox runs, `DiskWatch` samples the free space every second, measures
 * containers when `policy/disk-limit.ts` asks for it, and notifies a sandbox that exceeds its limit or must stop for the reserve.
 *
 * The reserve is checked at each sample, whatever measurements are under way. No command waits for a measurement of the watch. It never
 * stops or removes anything itself.
 */

import { statfs } from 'node:fs/promises';
import { isLocalType } from '../lib/local-disk.ts';
import { Slots } from '../lib/slots.ts';
import { type DiskSample, type DiskTimes, isDue, mostBytes } from '../policy/disk-limit.ts';
import { DiskReserve } from './disk-reserve.ts';
import { type DiskEntry, DiskSizes, lastOf } from './disk-sizes.ts';
import type { BoxEngine, DiskUse } from './ports.ts';
import type { DiskOver } from './records.ts';

export interface WatchedContainer {
  readonly boxId: string;
  readonly limitBytes: number;
  /** Replaces the limit: it may grow by this since the first measurement of its run. */
  readonly roomBytes?: number;
  /** Absent: the sandbox's own container. */
  readonly service?: string;
  /** The container runs for the first time, so it was empty when it was created. */
  readonly isFresh: boolean;
  /** Identifies the run: it changes with every stop, and earlier measurements do not count for the next run. */
  readonly run: string;
}

export interface WatchedSandbox {
  /** The sandbox runs or is starting. */
  readonly isActive: boolean;
  /** Containers that may write now, or when the sandbox is no longer paused. */
  readonly containers: readonly WatchedContainer[];
  readonly exceed: (over: DiskOver) => Promise<void>;
}

export interface DiskWatchParts {
  readonly engine: Pick<BoxEngine, 'diskFolder' | 'diskHold' | 'diskUse' | 'diskWritten'>;
  readonly times: DiskTimes;
  readonly sandboxes: () => readonly WatchedSandbox[];
  readonly report: (what: string, error: unknown) => void;
  /** Absent: `statfs` of the engine's folder. */
  readonly sample?: () => Promise<DiskSample | undefined>;
}

/** The part of `DiskWatch` that a sandbox calls. */
export interface DiskMeter {
  /** A sandbox starts: begin to sample, unless that is under way. */
  wake(): void;
  /** Measures a container now. */
  measure(boxId: string): Promise<DiskUse>;
  /** The last measurement of a running container. */
  known(boxId: string): { readonly bytes: number; readonly at: Date } | undefined;
  /** Undefined: the engine's disk is not on this machine. */
  sample(): Promise<DiskSample | undefined>;
}

/** Measurements of the watch at a time. */
const atOnce = 2;

export class DiskWatch implements DiskMeter {
  readonly #parts: DiskWatchParts;
  readonly #sizes: DiskSizes;
  readonly #reserve: DiskReserve;
  readonly #slots = new Slots(atOnce);
  readonly #deadlines = new Set<AbortController>();
  #isClosed = false;
  #timer: NodeJS.Timeout | undefined;
  /** The previous sample. */
  #before: DiskSample | undefined;

  constructor(parts: DiskWatchParts) {
    this.#parts = parts;
    const { engine, report } = parts;
    const sample = () => this.sample();
    this.#sizes = new DiskSizes({ engine, report, sample });
    this.#reserve = new DiskReserve({
      sizes: this.#sizes,
      sample,
      report,
      within: (ms) => this.#within(ms),
      isClosed: () => this.#isClosed,
      exceed: (sandbox, over) => this.#exceed(sandbox, over),
    });
  }

  wake(): void {
    if (this.#isClosed || this.#timer !== undefined) return;
    this.#next(0);
  }

  /** Aborts measurements. */
  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    for (const deadline of this.#deadlines) deadline.abort();
  }

  known(boxId: string): { readonly bytes: number; readonly at: Date } | undefined {
    const { last, at } = this.#sizes.get(boxId) ?? {};
    return last === undefined || at === undefined ? undefined : { bytes: last.bytes, at };
  }

  async measure(boxId: string): Promise<DiskUse> {
    return await this.#sizes.measure(boxId, 'bytes', this.#within(this.#parts.times.deadlineMs));
  }

  async sample(): Promise<DiskSample | undefined> {
    if (this.#parts.sample !== undefined) return await this.#parts.sample();
    const folder = await this.#parts.engine.diskFolder();
    if (folder === undefined) return undefined;
    const { type, bsize, bavail, blocks, ffree, files } = await statfs(folder);
    if (!isLocalType(type)) return undefined;
    return {
      free: { bytes: bavail * bsize, files: ffree },
      total: { bytes: blocks * bsize, files },
    };
  }

  /** Held until it fires: garbage collection may take a signal of `AbortSignal.any` whose source is a timeout. */
  #within(ms: number): AbortSignal {
    const deadline = new AbortController();
    if (this.#isClosed) deadline.abort();
    this.#deadlines.add(deadline);
    setTimeout(() => {
      this.#deadlines.delete(deadline);
      deadline.abort();
    }, ms).unref();
    return deadline.signal;
  }

  #next(afterMs: number): void {
    this.#timer = setTimeout(() => void this.#tick(), afterMs);
    this.#timer.unref();
  }

  /** Never rejects. */
  async #tick(): Promise<void> {
    const { sandboxes, times } = this.#parts;
    const isAnyActive = sandboxes().some(({ isActive }) => isActive);
    if (!isAnyActive) {
      this.#sizes.track(containersOf(sandboxes()), undefined);
      this.#reserve.reset();
      this.#before = undefined;
      this.#timer = undefined;
      return;
    }
    let pauseMs = times.sampleMs;
    try {
      const sample = await this.sample();
      // After the sample: what is not on this list was created later, so the sample has nothing of what it writes.
      const all = sandboxes();
      const watched = all.filter(({ isActive }) => isActive);
      this.#sizes.track(containersOf(all), this.#before);
      if (sample !== undefined) this.#reserve.check(watched, sample, this.#before);
      this.#before = sample;
      this.#checkLimits(watched, sample);
    } catch (error) {
      pauseMs = times.periodMs;
      this.#parts.report('sample the disk', error);
    }
    if (!this.#isClosed) this.#next(pauseMs);
  }

  #checkLimits(watched: readonly WatchedSandbox[], sample: DiskSample | undefined): void {
    const facts = { nowMs: performance.now(), sample, periodMs: this.#parts.times.periodMs };
    for (const sandbox of watched) {
      for (const container of sandbox.containers) {
        const entry = this.#sizes.get(container.boxId);
        if (entry === undefined || entry.isChecking || entry.isOver) continue;
        const limit = limitOf(container, entry);
        const most = mostBytes(entry.last, sample);
        if (most !== undefined && most > limit) this.#overLimit(sandbox, container, { limit, most });
        else if (isDue(entry.last, limit, facts)) void this.#check(sandbox, container, entry);
      }
    }
  }

  /** Never rejects. */
  async #check(sandbox: WatchedSandbox, container: WatchedContainer, entry: DiskEntry): Promise<void> {
    const { boxId } = container;
    entry.isChecking = true;
    try {
      await this.#slots.run(() => this.#checkLimit(sandbox, container, entry));
    } catch (error) {
      if (!this.#isClosed) this.#parts.report(`measure the disk usage of ${boxId}`, error);
    } finally {
      entry.isChecking = false;
    }
  }

  async #checkLimit(sandbox: WatchedSandbox, container: WatchedContainer, entry: DiskEntry): Promise<void> {
    const { boxId } = container;
    // The run may have ended while it waited for its turn.
    if (this.#isClosed || this.#sizes.get(boxId) !== entry) return;
    const beganMs = performance.now();
    const signal = this.#within(this.#parts.times.deadlineMs);
    const sample = await this.sample();
    try {
      if (await this.#isHeld(boxId, entry, sample)) return;
      await this.#sizes.markWritten(boxId, signal);
      const { amount } = await this.#sizes.measure(boxId, 'bytes', signal);
      const limit = limitOf(container, entry);
      if (amount > limit) this.#overLimit(sandbox, container, { limit, used: amount });
    } catch (error) {
      if (this.#isClosed) return;
      // It counts as measured, so that it is not repeated every second. The next sample compares what it may have written.
      this.#sizes.missed(boxId, signal.aborted ? 'late' : 'failed', beganMs, sample);
      throw error;
    }
  }

  #overLimit(
    sandbox: WatchedSandbox,
    { boxId, service }: WatchedContainer,
    { limit, used, most }: { readonly limit: number; readonly used?: number; readonly most?: number },
  ): void {
    const entry = this.#sizes.get(boxId);
    if (entry !== undefined) entry.isOver = true;
    const over: DiskOver = {
      rule: 'limit',
      of: 'bytes',
      limit,
      used: used ?? (most === undefined || most === Number.POSITIVE_INFINITY ? limit : most),
      ...(used === undefined ? { estimated: true } : {}),
      ...(service === undefined ? {} : { service }),
    };
    void this.#exceed(sandbox, over).finally(() => {
      if (entry !== undefined) entry.isOver = false;
    });
  }

  /** A container that the kernel limits is measured only when the disk itself runs low. */
  async #isHeld(boxId: string, entry: DiskEntry, sample: DiskSample | undefined): Promise<boolean> {
    if (entry.isHeld === undefined) {
      const hold = await this.#parts.engine.diskHold(boxId);
      entry.isHeld = hold?.rootBytes !== undefined && !hold.hasVolumes;
    }
    if (entry.isHeld) entry.last = lastOf(entry.last?.bytes ?? 0, 0, sample);
    return entry.isHeld;
  }

  /** Never rejects. */
  async #exceed({ exceed }: WatchedSandbox, over: DiskOver): Promise<void> {
    await exceed(over).catch((error: unknown) => {
      this.#parts.report('stop a sandbox for its disk usage', error);
    });
  }
}

const containersOf = (sandboxes: readonly WatchedSandbox[]): readonly WatchedContainer[] =>
  sandboxes.flatMap(({ containers }) => containers);

function limitOf({ limitBytes, roomBytes }: WatchedContainer, { first }: DiskEntry): number {
  return roomBytes === undefined ? limitBytes : (first ?? 0) + roomBytes;
}
