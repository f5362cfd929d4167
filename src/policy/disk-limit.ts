/**
 * Decides when a container is measured, and which sandbox is stopped when the engine's disk runs low. Pure.
 *
 * Sampling the free space costs microseconds; measuring a container walks all of its files. A container is therefore measured when the
 * disk has lost as much space as the container had left below its limit. Until then it cannot have reached the limit, unless another
 * process freed space in the meantime. A slow period covers that case, and engines whose disk cannot be sampled.
 */

export type DiskResource = 'bytes' | 'files';
export const diskResources = ['bytes', 'files'] as const;

type Amounts = Readonly<Record<DiskResource, number>>;

/** The file system of the engine's data root. A file system without a fixed number of inodes has `total.files` 0. */
export interface DiskSample {
  readonly free: Amounts;
  readonly total: Amounts;
}

export interface DiskTimes {
  /** Interval of the samples. */
  readonly sampleMs: number;
  /** Interval of the measurements while the disk changes, or when it cannot be sampled. */
  readonly periodMs: number;
  /** Deadline of one measurement. */
  readonly deadlineMs: number;
}

export const usualDiskTimes: DiskTimes = { sampleMs: 1000, periodMs: 60_000, deadlineMs: 60_000 };

/** The last measurement of a container. */
export interface LastSize {
  /** Of the last measurement that succeeded, with the free space at that time. */
  readonly bytes: number;
  /** Absent: the disk cannot be sampled. */
  readonly freeBytes?: number;
  readonly atMs: number;
  readonly tookMs: number;
  /** The last measurement did not succeed: it exceeded its deadline (`late`), or failed. */
  readonly missed?: 'late' | 'failed';
}

const gibibyte = 2 ** 30;
const mostReserveBytes = 5 * gibibyte;
const reserveShare = 0.05;
/** The reserve is checked again after each loss of this fraction. */
const reserveSteps = 10;
/** A smaller change of the free space counts as none. */
const idleBytes = 2 ** 20;
/** An idle disk is measured after this many periods: one process may have written what another one removed. */
const idlePeriods = 10;
/** Minimum pause between two measurements of a container, as a multiple of their duration. Urgent: it may have reached its limit. */
const restFactor = 10;
const urgentRestFactor = 1;
const leastStepBytes = 16 * 2 ** 20;
const limitSteps = 64;

/** Space that sandboxes leave to everything else on the disk: 5 %, and at most 5 GiB. */
export function reserveOf({ total }: Pick<DiskSample, 'total'>, resource: DiskResource): number {
  const share = total[resource] * reserveShare;
  return resource === 'bytes' ? Math.min(mostReserveBytes, share) : share;
}

export const reserveStep = (reserve: number): number => reserve / reserveSteps;

/** The resource of which less than `margin` reserves is left. */
export function scarceResource(sample: DiskSample, margin = 1): DiskResource | undefined {
  return diskResources.find((resource) => sample.free[resource] < margin * reserveOf(sample, resource));
}

/** Whether a container must be measured now. */
export function isDue(
  last: LastSize | undefined,
  limitBytes: number,
  facts: { readonly nowMs: number; readonly sample: DiskSample | undefined; readonly periodMs: number },
): boolean {
  const { nowMs, sample, periodMs } = facts;
  if (last === undefined) return true;
  const ageMs = nowMs - last.atMs;
  if (sample === undefined || last.freeBytes === undefined)
    return ageMs >= Math.max(periodMs, restFactor * last.tookMs);
  if (last.missed !== undefined) return ageMs >= Math.max(periodMs, urgentRestFactor * last.tookMs);
  const lost = last.freeBytes - sample.free.bytes;
  const isScarce = scarceResource(sample, 2) !== undefined;
  const isUrgent =
    lost >= Math.max(limitBytes - last.bytes, leastStep(limitBytes)) ||
    (isScarce && lost >= reserveStep(reserveOf(sample, 'bytes')));
  if (isUrgent) return ageMs >= urgentRestFactor * last.tookMs;
  if (ageMs < restFactor * last.tookMs) return false;
  // The limit was lowered since.
  if (last.bytes > limitBytes) return true;
  const isIdle = Math.abs(lost) < idleBytes;
  return ageMs >= (isIdle ? idlePeriods : 1) * periodMs;
}

/**
 * The most that a container can use whose measurement exceeded its deadline: all that the disk lost since the last one that succeeded.
 * Undefined: its size is known.
 */
export function mostBytes(last: LastSize | undefined, sample: DiskSample | undefined): number | undefined {
  if (last?.missed !== 'late') return undefined;
  if (sample === undefined || last.freeBytes === undefined) return Number.POSITIVE_INFINITY;
  return last.bytes + Math.max(0, last.freeBytes - sample.free.bytes);
}

const leastStep = (limitBytes: number): number => Math.max(leastStepBytes, limitBytes / limitSteps);

/** A running sandbox with all of its containers. */
export interface Growth<Id> {
  readonly id: Id;
  /** Growth of its measured size since its mark. Undefined: it was not measured in time. */
  readonly growth: number | undefined;
  /** Bytes that it wrote since its mark, also to files that no measurement finds. Undefined: not known. */
  readonly written: number | undefined;
}

export interface Victim<Id> {
  readonly id: Id;
  /** The sandbox wrote most of what no measured size explains. */
  readonly isByWrites: boolean;
}

/**
 * The sandbox to stop when less than the reserve is left: the one that grew most. If the measured sizes explain less than half of what the
 * disk lost, the one that wrote most on top of its growth. Undefined: none of them has a tenth of the reserve, so another program fills
 * the disk. `lost`: what the disk lost since the marks.
 */
export function chooseVictim<Id>(
  sandboxes: readonly Growth<Id>[],
  { reserve, lost }: { readonly reserve: number; readonly lost: number },
): Victim<Id> | undefined {
  const grew = ({ growth, written }: Growth<Id>): number => growth ?? written ?? Number.POSITIVE_INFINITY;
  const hid = ({ growth = 0, written = 0 }: Growth<Id>): number => written - Math.max(0, growth);
  const explained = sandboxes.reduce((sum, sandbox) => sum + Math.max(0, grew(sandbox)), 0);
  if (lost > 2 * explained) {
    const suspect = greatest(sandboxes, hid, reserveStep(reserve));
    if (suspect !== undefined) return { id: suspect.id, isByWrites: true };
  }
  const most = greatest(sandboxes, grew, reserveStep(reserve));
  return most === undefined ? undefined : { id: most.id, isByWrites: false };
}

function greatest<T>(items: readonly T[], of: (item: T) => number, least: number): T | undefined {
  const [first] = [...items].sort((a, b) => of(b) - of(a));
  return first !== undefined && of(first) >= least ? first : undefined;
}

/**
 * Whether a sandbox must be stopped for the reserve. Stopping frees no space, so the next one is stopped only after the disk lost
 * another tenth of the reserve. `lowest`: the free space at the last decision.
 */
export function isReserveBreached(free: number, reserve: number, lowest: number | undefined): boolean {
  return free < reserve && (lowest === undefined || free < lowest - reserveStep(reserve));
}
