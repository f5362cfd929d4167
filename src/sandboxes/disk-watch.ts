/**
 * Watches the disk that sandboxes write to, from outside. While a sandbox runs, `DiskWatch` samples the free space every second, measures
 * containers when `policy/disk-limit.ts` asks for it, and notifies a sandbox that exceeds its limit or must stop for the reserve.
 *
 * It runs one measurement at a time, and no exec waits for one. It never stops or removes anything itself.
 */

import { statfs } from 'node:fs/promises';
import type { FolderUse } from '../lib/folder-use.ts';
import { isLocalType } from '../lib/local-disk.ts';
import { Slots } from '../lib/slots.ts';
import {
  chooseVictim,
  type DiskResource,
  type DiskSample,
  type DiskTimes,
  isDue,
  isReserveBreached,
  type LastSize,
  reserveOf,
  scarceResource,
} from '../policy/disk-limit.ts';
import type { BoxEngine } from './ports.ts';
import type { DiskOver } from './records.ts';

export interface WatchedContainer {
  readonly boxId: string;
  readonly limitBytes: number;
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
  /** Containers that may write now. */
  readonly containers: readonly WatchedContainer[];
  readonly exceed: (over: DiskOver) => Promise<void>;
}

export interface DiskWatchParts {
  readonly engine: Pick<BoxEngine, 'diskFolder' | 'diskHold' | 'diskUse'>;
  readonly times: DiskTimes;
  readonly sandboxes: () => readonly WatchedSandbox[];
  readonly report: (what: string, error: unknown) => void;
}

/** The part of `DiskWatch` that a sandbox calls. */
export interface DiskMeter {
  /** A sandbox starts: begin to sample, unless that is under way. */
  wake(): void;
  /** Measures a container, after measurements that were requested before. */
  measure(boxId: string): Promise<FolderUse>;
  /** The last measurement of a running container. */
  known(boxId: string): { readonly bytes: number; readonly at: Date } | undefined;
  /** Undefined: the engine's disk is not on this machine. */
  sample(): Promise<DiskSample | undefined>;
}

interface Entry {
  readonly run: string;
  last?: LastSize;
  at?: Date;
  /** The first measurement of this run; growth counts from here. */
  mark: Partial<Record<DiskResource, number>>;
  size: Partial<Record<DiskResource, number>>;
  isComplete: boolean;
  /** The kernel limits everything that the container can write to. */
  isHeld?: boolean;
}

export class DiskWatch implements DiskMeter {
  readonly #parts: DiskWatchParts;
  readonly #entries = new Map<string, Entry>();
  readonly #turn = new Slots(1);
  #timer: NodeJS.Timeout | undefined;
  #work: Promise<void> | undefined;
  /** The free space when a sandbox was last stopped for the reserve. */
  #lowest: Partial<Record<DiskResource, number>> = {};
  /** The previous sample. */
  #before: DiskSample | undefined;
  /** A sandbox is being stopped for the reserve, and may still write. */
  #isStopping = false;
  #closed = false;

  constructor(parts: DiskWatchParts) {
    this.#parts = parts;
  }

  wake(): void {
    if (this.#closed || this.#timer !== undefined) return;
    this.#next(0);
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
  }

  known(boxId: string): { readonly bytes: number; readonly at: Date } | undefined {
    const { last, at } = this.#entries.get(boxId) ?? {};
    return last === undefined || at === undefined ? undefined : { bytes: last.bytes, at };
  }

  async measure(boxId: string): Promise<FolderUse> {
    return await this.#measure(boxId, 'bytes');
  }

  async sample(): Promise<DiskSample | undefined> {
    const folder = await this.#parts.engine.diskFolder();
    if (folder === undefined) return undefined;
    const { type, bsize, bavail, blocks, ffree, files } = await statfs(folder);
    if (!isLocalType(type)) return undefined;
    return {
      free: { bytes: bavail * bsize, files: ffree },
      total: { bytes: blocks * bsize, files },
    };
  }

  #next(afterMs: number): void {
    this.#timer = setTimeout(() => void this.#tick(), afterMs);
    this.#timer.unref();
  }

  /** Never rejects. */
  async #tick(): Promise<void> {
    const { sandboxes, times } = this.#parts;
    const watched = sandboxes();
    if (watched.every(({ isActive }) => !isActive)) {
      this.#entries.clear();
      this.#lowest = {};
      this.#before = undefined;
      this.#timer = undefined;
      return;
    }
    let pauseMs = times.sampleMs;
    try {
      const sample = await this.sample();
      this.#track(watched);
      this.#before = sample;
      this.#work ??= this.#check(watched, sample).finally(() => {
        this.#work = undefined;
      });
    } catch (error) {
      pauseMs = times.periodMs;
      this.#parts.report('sample the disk', error);
    }
    if (!this.#closed) this.#next(pauseMs);
  }

  /** Adds entries for new runs and drops those of containers that no longer run. */
  #track(watched: readonly WatchedSandbox[]): void {
    const present = new Set<string>();
    for (const { boxId, isFresh, run } of watched.flatMap(({ containers }) => containers)) {
      present.add(boxId);
      if (this.#entries.get(boxId)?.run === run) continue;
      const entry: Entry = { run, mark: {}, size: {}, isComplete: true };
      if (isFresh) entry.mark.bytes = 0;
      // The container did not exist at the previous sample, so the disk has lost what it wrote. Otherwise it is measured.
      if (isFresh && this.#before !== undefined) entry.last = lastOf(0, 0, this.#before);
      this.#entries.set(boxId, entry);
    }
    for (const boxId of this.#entries.keys()) if (!present.has(boxId)) this.#entries.delete(boxId);
  }

  /** Never rejects. */
  async #check(watched: readonly WatchedSandbox[], sample: DiskSample | undefined): Promise<void> {
    const { periodMs } = this.#parts.times;
    for (const sandbox of watched) {
      for (const container of sandbox.containers) {
        const last = this.#entries.get(container.boxId)?.last;
        const facts = { nowMs: performance.now(), sample, periodMs };
        if (isDue(last, container.limitBytes, facts)) await this.#checkLimit(sandbox, container);
      }
    }
    if (sample !== undefined) await this.#checkReserve(watched, sample);
  }

  async #checkLimit(
    sandbox: WatchedSandbox,
    { boxId, limitBytes, service }: WatchedContainer,
  ): Promise<void> {
    try {
      if (await this.#isHeld(boxId)) return;
      const { amount } = await this.#measure(boxId, 'bytes');
      if (amount <= limitBytes) return;
      void this.#exceed(sandbox, {
        rule: 'limit',
        of: 'bytes',
        limit: limitBytes,
        used: amount,
        ...(service === undefined ? {} : { service }),
      });
    } catch (error) {
      this.#parts.report(`measure the disk usage of ${boxId}`, error);
    }
  }

  /** A container that the kernel limits is measured only when the disk itself runs low. */
  async #isHeld(boxId: string): Promise<boolean> {
    const entry = this.#entries.get(boxId);
    if (entry === undefined) return false;
    if (entry.isHeld === undefined) {
      const { rootBytes, hasVolumes } = await this.#parts.engine.diskHold(boxId);
      entry.isHeld = rootBytes !== undefined && !hasVolumes;
    }
    if (entry.isHeld) entry.last = lastOf(entry.last?.bytes ?? 0, 0, await this.sample());
    return entry.isHeld;
  }

  async #measure(boxId: string, of: DiskResource): Promise<FolderUse> {
    const { engine, times } = this.#parts;
    return await this.#turn.run(async () => {
      const beganMs = performance.now();
      // Before the walk: data written during the walk must count for the next decision.
      const sample = await this.sample();
      const entry = this.#entries.get(boxId);
      try {
        const use = await engine.diskUse(boxId, { of, signal: AbortSignal.timeout(times.deadlineMs) });
        if (entry === undefined) return use;
        entry.size[of] = use.amount;
        entry.mark[of] ??= use.amount;
        entry.isComplete = use.isComplete;
        if (of === 'bytes') {
          entry.last = lastOf(use.amount, performance.now() - beganMs, sample);
          entry.at = new Date();
        }
        return use;
      } catch (error) {
        // The entry counts as measured, so that a failing measurement is not repeated every second.
        if (entry !== undefined) {
          entry.isComplete = false;
          entry.last = lastOf(entry.last?.bytes ?? 0, performance.now() - beganMs, sample);
        }
        throw error;
      }
    });
  }

  async #checkReserve(watched: readonly WatchedSandbox[], sample: DiskSample): Promise<void> {
    const soon = scarceResource(sample, 2);
    if (soon === undefined) this.#lowest = {};
    // The first count is the mark for the growth.
    if (soon === 'files') await this.#measureAll(watched, 'files', ({ size }) => size.files === undefined);
    const scarce = scarceResource(sample);
    if (scarce === undefined || this.#isStopping) return;
    const reserve = reserveOf(sample, scarce);
    const free = sample.free[scarce];
    if (!isReserveBreached(free, reserve, this.#lowest[scarce])) return;
    this.#lowest[scarce] = free;
    await this.#measureAll(watched, scarce, () => true);
    const growths = watched.map((sandbox) => ({ id: sandbox, growth: this.#growthOf(sandbox, scarce) }));
    const victim = chooseVictim(growths, reserve);
    if (victim === undefined) {
      const why = new Error(`${free} ${scarce} are free, less than the reserve of ${Math.round(reserve)}`);
      this.#parts.report('find a sandbox that fills the disk', why);
      return;
    }
    this.#resetMarks(scarce);
    const used = this.#sizeOf(victim.id, scarce);
    this.#isStopping = true;
    const over: DiskOver = { rule: 'reserve', of: scarce, limit: Math.round(reserve), used, free };
    void this.#exceed(victim.id, over).finally(() => this.#stopped(scarce));
  }

  /** What the victim wrote until it ended is not held against others. */
  async #stopped(scarce: DiskResource): Promise<void> {
    const sample = await this.sample().catch(() => undefined);
    if (sample !== undefined) this.#lowest[scarce] = sample.free[scarce];
    this.#isStopping = false;
  }

  async #measureAll(
    watched: readonly WatchedSandbox[],
    of: DiskResource,
    isWanted: (entry: Entry) => boolean,
  ): Promise<void> {
    for (const { boxId } of watched.flatMap(({ containers }) => containers)) {
      const entry = this.#entries.get(boxId);
      if (entry === undefined || !isWanted(entry)) continue;
      await this.#measure(boxId, of).catch((error: unknown) => {
        this.#parts.report(`measure the disk usage of ${boxId}`, error);
      });
    }
  }

  #sizeOf({ containers }: WatchedSandbox, of: DiskResource): number {
    return containers.reduce((sum, { boxId }) => sum + (this.#entries.get(boxId)?.size[of] ?? 0), 0);
  }

  /** Infinite if a container cannot be measured. */
  #growthOf(sandbox: WatchedSandbox, of: DiskResource): number {
    const entries = sandbox.containers.flatMap(({ boxId }) => this.#entries.get(boxId) ?? []);
    if (entries.some(({ isComplete }) => !isComplete)) return Number.POSITIVE_INFINITY;
    return entries.reduce((sum, { size, mark }) => sum + (size[of] ?? 0) - (mark[of] ?? 0), 0);
  }

  /** Growth counts from the present sizes on. */
  #resetMarks(of: DiskResource): void {
    for (const { mark, size } of this.#entries.values()) {
      const now = size[of];
      if (now !== undefined) mark[of] = now;
    }
  }

  /** Never rejects. */
  async #exceed({ exceed }: WatchedSandbox, over: DiskOver): Promise<void> {
    await exceed(over).catch((error: unknown) => {
      this.#parts.report('stop a sandbox for its disk usage', error);
    });
  }
}

function lastOf(bytes: number, tookMs: number, sample: DiskSample | undefined): LastSize {
  return {
    bytes,
    tookMs,
    atMs: performance.now(),
    ...(sample === undefined ? {} : { freeBytes: sample.free.bytes }),
  };
}
