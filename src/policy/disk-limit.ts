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

/** The last measurement of a container, with the free space at that time. */
export interface LastSize {
  readonly bytes: number;
  readonly atMs: number;
  readonly tookMs: number;
  /** Absent: the disk cannot be sampled. */
  readonly freeBytes?: number;
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
/** Minimum pause between two measurements of a container, as a multiple of their duration. */
const restFactor = 10;
const urgentRestFactor = 2;
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
  const isScarce = scarceResource(sample, 2) !== undefined;
  if (ageMs < (isScarce ? urgentRestFactor : restFactor) * last.tookMs) return false;
  // The limit was lowered since.
  if (last.bytes > limitBytes) return true;
  const lost = last.freeBytes - sample.free.bytes;
  if (lost >= Math.max(limitBytes - last.bytes, leastStep(limitBytes))) return true;
  if (isScarce && lost >= reserveStep(reserveOf(sample, 'bytes'))) return true;
  const isIdle = Math.abs(lost) < idleBytes;
  return ageMs >= (isIdle ? idlePeriods : 1) * periodMs;
}

const leastStep = (limitBytes: number): number => Math.max(leastStepBytes, limitBytes / limitSteps);

/** A running sandbox with all of its containers. */
export interface Growth<Id> {
  readonly id: Id;
  /** Since its start, or since this daemon adopted it. Infinite: its size cannot be measured. */
  readonly growth: number;
}

/**
 * The sandbox to stop when less than the reserve is left: the one that grew most. Undefined: none of them grew by a tenth of the reserve,
 * so another program fills the disk.
 */
export function chooseVictim<Id>(sandboxes: readonly Growth<Id>[], reserve: number): Growth<Id> | undefined {
  const [most] = [...sandboxes].sort((a, b) => b.growth - a.growth);
  return most !== undefined && most.growth >= reserveStep(reserve) ? most : undefined;
}

/**
 * Whether a sandbox must be stopped for the reserve. Stopping frees no space, so the next one is stopped only after the disk lost
 * another tenth of the reserve. `lowest`: the free space at the last decision.
 */
export function isReserveBreached(free: number, reserve: number, lowest: number | undefined): boolean {
  return free < reserve && (lowest === undefined || free < lowest - reserveStep(reserve));
}
