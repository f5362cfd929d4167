/**
 * The disk of one sandbox: its limits, its watched containers, whether it may start, and its rows of `verify`. `SandboxDisk` starts and
 * stops nothing.
 */

import { formatSize } from '../lib/sizes.ts';
import { scarceResource } from '../policy/disk-limit.ts';
import { decideLimits } from '../policy/hardening.ts';
import { profiles } from '../policy/profiles.ts';
import { wantedServices } from '../policy/services.ts';
import { SallyportError } from '../protocol/errors.ts';
import type { SandboxState } from '../protocol/states.ts';
import type { SandboxView, VerifyCheck } from '../protocol/views.ts';
import { cleanUpError, diskError } from './disk-error.ts';
import type { DiskMeter, WatchedContainer } from './disk-watch.ts';
import type { BoxEngine } from './ports.ts';
import type { RecordKeeper } from './record-keeper.ts';
import type { SandboxRecord } from './records.ts';

/** What a clean-up run may write on top: shell history, or files that are moved before they are removed. */
const cleanUpRoomBytes = 256 * 2 ** 20;
/** `verify` waits this long for a measurement. */
const patienceMs = 10_000;
const keepsOwn = 'has the limits.disk of its spec, which `start --disk` does not change';
const writes: ReadonlySet<SandboxState> = new Set(['PENDING', 'READY']);

export const diskLimitOf = ({ diskBytes, plan }: Pick<SandboxRecord, 'diskBytes' | 'plan'>): number =>
  diskBytes ?? plan.limits.diskBytes;

/** Services with a limit of their own, which `start` does not change. */
const ownLimitsOf = ({ spec }: Pick<SandboxRecord, 'spec'>): readonly string[] =>
  wantedServices(spec).flatMap(({ name, limits }) => (limits?.disk === undefined ? [] : [name]));

const errorOf = (record: SandboxRecord): SallyportError =>
  diskError({ ...record, limitBytes: diskLimitOf(record), ownLimits: ownLimitsOf(record) });

/** Undefined: the sandbox was not stopped for its disk usage, or runs for clean-up. */
export function diskErrorOf(record: SandboxRecord): SallyportError | undefined {
  return record.overDisk === undefined || record.cleanUp !== undefined ? undefined : errorOf(record);
}

export interface SandboxDiskParts {
  readonly keeper: Pick<RecordKeeper, 'record' | 'note'>;
  readonly engine: Pick<BoxEngine, 'diskHold'>;
  readonly meter: DiskMeter;
  readonly tell: (code: string, message: string) => void;
  readonly report: (what: string, error: unknown) => void;
}

export class SandboxDisk {
  readonly #parts: SandboxDiskParts;
  /** This daemon creates the sandbox. */
  readonly #isNew: boolean;

  constructor(parts: SandboxDiskParts) {
    this.#parts = parts;
    this.#isNew = this.#record.state === 'PENDING';
  }

  get #record(): SandboxRecord {
    return this.#parts.keeper.record;
  }

  /** Stopped for its disk usage, with a container that a clean-up run can start. */
  get isHalted(): boolean {
    const { state, containerId } = this.#record;
    const isAtRest = state === 'STOPPED' || state === 'FAILED';
    return isAtRest && containerId !== undefined && diskErrorOf(this.#record) !== undefined;
  }

  /** Changes with each stop. */
  get run(): string {
    return this.#record.stoppedAt ?? '';
  }

  get isActive(): boolean {
    return writes.has(this.#record.state);
  }

  /** Containers that may write now, or when the sandbox is no longer paused. */
  get watched(): readonly WatchedContainer[] {
    const { state, overDisk, cleanUp } = this.#record;
    if (!this.isActive && state !== 'PAUSED') return [];
    const all = this.#containers();
    if (cleanUp === undefined) return overDisk === undefined ? all : [];
    // It may start above its limit, so only what it adds counts.
    return all
      .filter(({ service }) => service === undefined)
      .map((box) => ({ ...box, roomBytes: cleanUpRoomBytes }));
  }

  requireNoCleanUp(): void {
    if (this.#record.cleanUp !== undefined) throw cleanUpError(this.#record);
  }

  /**
   * Whether the limit can change without a new container. The kernel's limit is fixed when a container is created. `all`: also of services
   * with a limit of their own.
   */
  async isLive({ all }: { readonly all: boolean }): Promise<boolean> {
    const own = all ? [] : ownLimitsOf(this.#record);
    const holds = await Promise.all(
      this.#containers()
        .filter(({ service }) => service === undefined || !own.includes(service))
        .map(({ boxId }) => this.#parts.engine.diskHold(boxId)),
    );
    return holds.every((hold) => hold?.rootBytes === undefined);
  }

  async change(diskBytes: number): Promise<void> {
    const { name, plan } = this.#record;
    decideLimits(profiles[plan.profile], { diskBytes });
    if (!(await this.isLive({ all: false })) && diskBytes !== diskLimitOf(this.#record)) {
      throw new SallyportError(
        'engine_unsupported',
        `the disk limit of sandbox ${name} cannot be changed: the engine fixed it when the container was created`,
        {
          details: { sandbox: name, field: 'limits.disk' },
          advice: `Remove files with \`sally shell ${name}\`, or copy out what is needed (\`sally cp\`) and create another sandbox with \`--disk\`.`,
        },
      );
    }
    this.#parts.keeper.note({ diskBytes });
    const own = ownLimitsOf(this.#record);
    if (own.length > 0) this.#parts.tell('disk_limit_services', `${own.join(', ')} ${keepsOwn}`);
  }

  /**
   * Before a normal start: measures a sandbox that was stopped for its disk usage, and rejects if it is still over. `isAsked`: the caller
   * set a limit for this start, which overrides the reserve.
   */
  async requireRoom(isAsked: boolean): Promise<void> {
    const { keeper, meter } = this.#parts;
    const { overDisk } = this.#record;
    if (overDisk === undefined) return;
    await this.requireWithinLimits();
    const sample = overDisk.rule === 'reserve' && !isAsked ? await meter.sample() : undefined;
    if (sample !== undefined && scarceResource(sample) !== undefined) throw errorOf(this.#record);
    keeper.note({ overDisk: undefined });
  }

  /** Measures the sandbox and its services. What cannot be measured now is left to the watch. */
  async requireWithinLimits(): Promise<void> {
    const { keeper, meter, report } = this.#parts;
    for (const { boxId, limitBytes, service } of this.#containers()) {
      const amount = await meter.measure(boxId).then(
        (use) => use.amount,
        (error: unknown) => report(`measure the disk usage of ${boxId}`, error),
      );
      if (amount === undefined || amount <= limitBytes) continue;
      const over = { rule: 'limit', of: 'bytes', limit: limitBytes, used: amount } as const;
      keeper.note({ overDisk: { ...over, ...(service === undefined ? {} : { service }) } });
      throw errorOf(this.#record);
    }
  }

  view(): SandboxView['disk'] {
    const { containerId, overDisk, cleanUp } = this.#record;
    const known = containerId === undefined ? undefined : this.#parts.meter.known(containerId);
    const atStop = overDisk?.rule === 'limit' && overDisk.service === undefined ? overDisk.used : undefined;
    const used = known?.bytes ?? atStop;
    return {
      ...(used === undefined ? {} : { used_bytes: used }),
      ...(known === undefined ? {} : { measured_at: known.at.toISOString() }),
      ...(overDisk === undefined ? {} : { exceeded: overDisk.rule }),
      ...(cleanUp === undefined ? {} : { clean_up: true }),
    };
  }

  /** One row for the sandbox and each service: `exact`, `watched` or `not enforced`. */
  async rows(): Promise<readonly VerifyCheck[]> {
    return await Promise.all(this.#containers().map((container) => this.#row(container)));
  }

  async #row({ boxId, limitBytes, service }: WatchedContainer): Promise<VerifyCheck> {
    const { engine, meter } = this.#parts;
    const outside = service === undefined ? this.#outside() : '';
    const row = {
      name: service === undefined ? 'disk' : `disk of ${service}`,
      expected: `at most ${formatSize(limitBytes)}`,
    };
    const hold = await engine.diskHold(boxId);
    if (hold === undefined)
      return { ...row, found: 'nothing to limit: it has no container', status: 'unknown' };
    if (hold.rootBytes !== undefined && !hold.hasVolumes) {
      const found = `exact: the kernel refuses more than ${formatSize(limitBytes)}${outside}`;
      return { ...row, found, status: 'ok' };
    }
    const unenforced = (why: string): VerifyCheck => ({
      ...row,
      found: `not enforced: ${why}`,
      status: 'failed',
      advice: "Only the reserve of the engine's disk stops this sandbox (docs/disk.md).",
    });
    const late = Symbol('late');
    const use = await Promise.race([
      meter
        .measure(boxId)
        .catch((error: unknown) => (error instanceof Error ? error.message : String(error))),
      after(patienceMs, late),
    ]);
    if (typeof use === 'string') return unenforced(use);
    if (typeof use === 'symbol')
      return { ...row, found: 'watched: the measurement is not finished', status: 'unknown' };
    if (!use.isComplete) return unenforced('the daemon cannot read all of its files');
    const isSampled = (await meter.sample()) !== undefined;
    const how = isSampled
      ? 'the free space is sampled every second'
      : "measured once a minute, because the engine's disk is not on this machine";
    const unseen = use.hasDeleted ? '' : '; deleted files that are still open are not counted';
    const found = `watched: ${formatSize(use.amount)} of ${formatSize(limitBytes)}, ${how}${unseen}${outside}`;
    return { ...row, found, status: 'ok' };
  }

  /** Writable mounts of the host. */
  #outside(): string {
    const targets = this.#record.plan.mounts.filter(({ writable }) => writable).map(({ target }) => target);
    return targets.length === 0 ? '' : `; not counted: ${targets.join(', ')}`;
  }

  #containers(): readonly WatchedContainer[] {
    const { containerId, services = [], spec, stoppedAt } = this.#record;
    const limitBytes = diskLimitOf(this.#record);
    const isFresh = this.#isNew && stoppedAt === undefined;
    const { run } = this;
    const own = new Map(wantedServices(spec).map(({ name, limits }) => [name, limits?.disk]));
    const limitOf = (service: string): number => own.get(service) ?? limitBytes;
    return [
      ...(containerId === undefined ? [] : [{ boxId: containerId, limitBytes, isFresh, run }]),
      ...services.flatMap(({ name, containerId: boxId }) =>
        boxId === undefined ? [] : [{ boxId, limitBytes: limitOf(name), service: name, isFresh, run }],
      ),
    ];
  }
}

async function after<T>(ms: number, value: T): Promise<T> {
  return await new Promise((resolve) => {
    setTimeout(() => resolve(value), ms).unref();
  });
}
