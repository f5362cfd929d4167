import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { deferred } from '../lib/deferred.ts';
import { PlantedWatch, scanPatienceMs } from './planted-watch.ts';
import type { Manifest, SandboxRecord } from './records.ts';

/** A watch whose first scan waits until it is let go. */
function watched() {
  const root = mkdtempSync(join(tmpdir(), 'sallyport-watch-'));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  const go = deferred<void>();
  const told: string[] = [];
  const reports: unknown[] = [];
  let heard = deferred<void>();
  const record = {
    name: 'box',
    spec: { workspace: { path: root, target: '/workspace', mode: 'live' } },
    plan: { mounts: [{ source: root, target: '/workspace', writable: true }], stubs: [] },
  } as unknown as SandboxRecord;
  const watch = new PlantedWatch({
    record: () => record,
    now: () => '2026-01-01T00:00:00.000Z',
    tell: (_code, message) => {
      told.push(message);
      heard.resolve();
    },
    report: (_what, error) => {
      reports.push(error);
      heard.resolve();
    },
    load: async (): Promise<Manifest> => {
      await go.promise;
      return { marks: {}, patternFiles: [] };
    },
    save: async () => {},
  });
  /** Resolves at the end of the next scan that finds something or fails. */
  const scanned = async (): Promise<void> => {
    await heard.promise;
    heard = deferred<void>();
  };
  return { root, go, told, reports, scanned, watch };
}

describe('[N5] the watch over a live workspace', () => {
  it('says that a scan is not finished when the patience ends, and has the result later', async () => {
    const { root, go, told, watch } = watched();
    writeFileSync(join(root, '.npmrc'), 'x');
    expect(await watch.result(1)).toEqual({ finished: false, planted: [] });
    go.resolve();
    expect(await watch.result(60_000)).toMatchObject({
      finished: true,
      planted: [{ path: '.npmrc', how: 'new' }],
    });
    expect(told).toHaveLength(1);
  });

  it('counts only a scan that began after the question, and one queued scan answers all who wait', async () => {
    const { root, go, told, watch } = watched();
    const first = watch.result(60_000);
    const others = [watch.result(60_000), watch.result(60_000)];
    go.resolve();
    await first;
    writeFileSync(join(root, '.npmrc'), 'x');
    for (const scan of [...(await Promise.all(others)), await watch.result(60_000)])
      expect(scan).toMatchObject({ finished: true });
    expect((await watch.result(60_000))?.planted.map(({ path }) => path)).toEqual(['.npmrc']);
    // Each finding is told once, however often it is found.
    expect(told).toHaveLength(1);
  });

  it('compares with the baseline that is being taken, however early it is asked', async () => {
    const { root, told, watch } = watched();
    writeFileSync(join(root, '.npmrc'), 'x');
    const taking = watch.takeBaseline();
    expect(await watch.result(60_000)).toEqual({ finished: true, planted: [] });
    await taking;
    expect(told).toEqual([]);
  });
});

describe('[N5] the time of a scan', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }));
  afterEach(() => void vi.useRealTimers());

  it('keeps a caller waiting for 2 seconds and no longer', async () => {
    expect(scanPatienceMs).toBe(2000);
    const { watch } = watched();
    let isAnswered = false;
    const answer = watch.result().finally(() => {
      isAnswered = true;
    });
    await vi.advanceTimersByTimeAsync(1999);
    expect(isAnswered).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(await answer).toEqual({ finished: false, planted: [] });
  });

  it('is one walk for all requests of half a second, and none without a request', async () => {
    const { root, go, reports, scanned, watch } = watched();
    go.resolve();
    // A scan of a folder that is gone is reported, so reports count the scans.
    rmSync(root, { recursive: true });
    for (let count = 0; count < 5; count++) watch.request();
    expect(vi.getTimerCount()).toBe(1);
    await vi.advanceTimersByTimeAsync(499);
    expect(vi.getTimerCount()).toBe(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(vi.getTimerCount()).toBe(0);
    await scanned();
    await vi.advanceTimersByTimeAsync(60_000);
    await watch.result(60_000);
    expect(reports).toHaveLength(2);
  });

  it('is followed by a pause of ten times its length, in which requests wait', async () => {
    const { root, go, told, scanned, watch } = watched();
    writeFileSync(join(root, '.npmrc'), 'x');
    watch.request();
    await vi.advanceTimersByTimeAsync(500);
    await vi.advanceTimersByTimeAsync(300);
    go.resolve();
    await scanned();
    writeFileSync(join(root, '.exrc'), 'x');
    watch.request();
    watch.request();
    await vi.advanceTimersByTimeAsync(2999);
    expect(vi.getTimerCount()).toBe(1);
    expect(told).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(vi.getTimerCount()).toBe(0);
    await scanned();
    expect(told[1]).toContain('.exrc');
  });

  it('does not come after the end of the watch', async () => {
    const { watch } = watched();
    watch.request();
    watch.end();
    expect(vi.getTimerCount()).toBe(0);
  });
});
