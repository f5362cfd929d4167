import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { deferred } from '../lib/deferred.ts';
import { PlantedWatch } from './planted-watch.ts';
import type { Manifest, SandboxRecord } from './records.ts';

/** A watch whose first scan waits until it is let go. */
function watched() {
  const root = mkdtempSync(join(tmpdir(), 'sallyport-watch-'));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  const go = deferred<void>();
  const told: string[] = [];
  const record = {
    name: 'box',
    spec: { workspace: { path: root, target: '/workspace', mode: 'live' } },
    plan: { mounts: [{ source: root, target: '/workspace', writable: true }], stubs: [] },
  } as unknown as SandboxRecord;
  const watch = new PlantedWatch({
    record: () => record,
    now: () => '2026-01-01T00:00:00.000Z',
    tell: (_code, message) => void told.push(message),
    report: () => {},
    load: async (): Promise<Manifest> => {
      await go.promise;
      return { marks: {}, patternFiles: [] };
    },
    save: async () => {},
  });
  return { root, go, told, watch };
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
});
