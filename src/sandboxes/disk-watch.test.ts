/** The watch over a disk whose engine answers late or with errors, which a real one does not do on demand. */

import { describe, expect, it, onTestFinished } from 'vitest';
import { until } from '../../test/support/until.ts';
import type { DiskSample } from '../policy/disk-limit.ts';
import { DiskWatch, type WatchedContainer, type WatchedSandbox } from './disk-watch.ts';
import type { DiskUse, DiskUseOptions } from './ports.ts';
import type { DiskOver } from './records.ts';

const gib = 2 ** 30;

/** Never ends before it is aborted. */
const never = async (_id: string, { signal }: DiskUseOptions): Promise<DiskUse> =>
  await new Promise((_, reject) => {
    signal?.addEventListener('abort', () => reject(new Error('aborted')));
  });
const sized =
  (sizes: Readonly<Record<string, number>>) =>
  async (id: string): Promise<DiskUse> => ({ amount: sizes[id] ?? 0, isComplete: true, hasDeleted: true });

function newWatch(
  names: readonly string[],
  {
    use,
    written = {},
    deadlineMs = 60_000,
    periodMs = 50,
    container = {},
    sampled = () => {},
  }: {
    readonly use: (id: string, options: DiskUseOptions) => Promise<DiskUse>;
    readonly written?: Readonly<Record<string, number>>;
    readonly deadlineMs?: number;
    readonly periodMs?: number;
    readonly container?: Partial<WatchedContainer>;
    /** Called before a sample is taken. */
    readonly sampled?: (disk: { freeBytes: number }) => void;
  },
) {
  const stopped: Record<string, DiskOver> = {};
  const paused = new Set<string>();
  const reports: string[] = [];
  const disk = { freeBytes: 100 * gib };
  const sandboxOf = (name: string): WatchedSandbox => ({
    isActive: stopped[name] === undefined && !paused.has(name),
    containers: [{ boxId: name, limitBytes: 20 * gib, isFresh: true, run: '', ...container }],
    exceed: async (over) => {
      stopped[name] = over;
    },
  });
  const sample = async (): Promise<DiskSample> => {
    sampled(disk);
    return { free: { bytes: disk.freeBytes, files: 9e6 }, total: { bytes: 200 * gib, files: 1e7 } };
  };
  const watch = new DiskWatch({
    engine: {
      diskFolder: async () => undefined,
      diskHold: async () => ({ hasVolumes: false }),
      diskUse: use,
      diskWritten: async (id) => written[id],
    },
    times: { sampleMs: 5, periodMs, deadlineMs },
    sandboxes: () => names.map(sandboxOf),
    report: (what) => void reports.push(what),
    sample,
  });
  onTestFinished(() => watch.close());
  watch.wake();
  return { watch, disk, stopped, paused, reports };
}

describe('[N5] the watch over the disk', () => {
  it('checks the reserve while measurements are under way, and stops the one that writes', async () => {
    const { disk, stopped } = newWatch(['still', 'busy'], {
      use: never,
      written: { still: 0, busy: 90 * gib },
    });
    disk.freeBytes = 4 * gib;
    await until(async () => stopped['busy'] !== undefined);
    expect(stopped).toMatchObject({ busy: { rule: 'reserve' } });
    expect(stopped['still']).toBeUndefined();
  });

  it('stops the one that grew since the disk began to run low, and not the largest', async () => {
    const sizes = { large: 60 * gib, growing: gib };
    const measured = new Set<string>();
    const { disk, stopped, watch } = newWatch(['large', 'growing'], {
      use: async (id) => {
        if (disk.freeBytes === 8 * gib) measured.add(id);
        return await sized(sizes)(id);
      },
      container: { limitBytes: 200 * gib },
      periodMs: 60_000,
    });
    await until(() => watch.known('large') !== undefined && watch.known('growing') !== undefined);
    // Less than twice the reserve of 5 GiB: growth counts from here.
    disk.freeBytes = 8 * gib;
    await until(() => measured.size === 2);
    sizes.growing = 5 * gib;
    disk.freeBytes = 4 * gib;
    await until(() => Object.keys(stopped).length > 0);
    expect(stopped).toMatchObject({ growing: { rule: 'reserve', used: 5 * gib, free: 4 * gib } });
    expect(stopped['large']).toBeUndefined();
  });

  it('stops a sandbox that cannot be measured in time and may be over its limit', async () => {
    const { disk, stopped, reports } = newWatch(['many'], { use: never, deadlineMs: 20 });
    await until(async () => reports.length > 0);
    expect(stopped).toEqual({});
    disk.freeBytes = 70 * gib;
    await until(async () => stopped['many'] !== undefined);
    expect(stopped['many']).toMatchObject({
      rule: 'limit',
      limit: 20 * gib,
      used: 30 * gib,
      estimated: true,
    });
  });

  it('measures one sandbox while the measurement of another does not end', async () => {
    const use = async (id: string, options: DiskUseOptions): Promise<DiskUse> =>
      id === 'slow' ? await never(id, options) : await sized({ over: 21 * gib })(id);
    const { disk, stopped, watch } = newWatch(['slow', 'over'], { use });
    disk.freeBytes = 78 * gib;
    await until(async () => stopped['over'] !== undefined);
    expect(stopped).toMatchObject({ over: { rule: 'limit', used: 21 * gib } });
    // The same for a command.
    expect(await watch.measure('other')).toMatchObject({ amount: 0 });
  });

  it('stops a sandbox that was made and wrote while a sample was taken', async () => {
    const names = ['first'];
    let isDue = false;
    const { stopped, watch } = newWatch(names, {
      use: sized({ late: 30 * gib }),
      // Nothing is measured for its age alone.
      periodMs: 60_000,
      sampled: (disk) => {
        if (!isDue) return;
        isDue = false;
        names.push('late');
        disk.freeBytes -= 30 * gib;
      },
    });
    // Only ticks sample from then on.
    await until(async () => watch.known('first') !== undefined);
    isDue = true;
    await until(async () => stopped['late'] !== undefined);
    expect(stopped).toMatchObject({ late: { rule: 'limit', used: 30 * gib } });
    expect(stopped['first']).toBeUndefined();
  });

  it('keeps the size of a sandbox that is paused in its first run', async () => {
    const { watch, paused } = newWatch(['one'], { use: sized({ one: 8 * gib }) });
    await until(async () => watch.known('one')?.bytes === 8 * gib);
    paused.add('one');
    const before = watch.known('one')?.at;
    await until(async () => await ticksEnd(watch));
    paused.delete('one');
    watch.wake();
    expect(watch.known('one')).toMatchObject({ bytes: 8 * gib, at: before });
  });

  it('lets a clean-up run grow by its room, whatever its size and limit', async () => {
    const sizes = { one: 3 * gib };
    const container = { isFresh: false, roomBytes: gib };
    const { watch, disk, stopped } = newWatch(['one'], { use: (id) => sized(sizes)(id), container });
    await until(async () => watch.known('one') !== undefined);
    sizes.one = 3.9 * gib;
    disk.freeBytes = 98 * gib;
    await until(async () => watch.known('one')?.bytes === 3.9 * gib);
    expect(stopped).toEqual({});
    sizes.one = 4.1 * gib;
    disk.freeBytes = 96 * gib;
    await until(async () => stopped['one'] !== undefined);
    expect(stopped['one']).toMatchObject({ limit: 4 * gib, used: 4.1 * gib });
  });

  it('aborts a measurement when it is closed', async () => {
    let begun = false;
    const aborted = new Promise<void>((resolve) => {
      const use = async (_id: string, { signal }: DiskUseOptions): Promise<DiskUse> => {
        begun = true;
        await new Promise<void>((end) => signal?.addEventListener('abort', () => end()));
        resolve();
        throw new Error('aborted');
      };
      const { watch, stopped } = newWatch(['one'], { use, container: { isFresh: false } });
      void until(async () => begun).then(() => watch.close());
      onTestFinished(() => expect(stopped).toEqual({}));
    });
    await aborted;
  });
});

/** Its timer is asked for anew by `wake` only when it ended. */
async function ticksEnd(watch: DiskWatch): Promise<boolean> {
  await new Promise((resolve) => setImmediate(resolve));
  return watch.known('one') !== undefined;
}
