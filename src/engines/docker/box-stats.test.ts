import { describe, expect, it } from 'vitest';
import { boxStats } from './box-stats.ts';

const sample = (usage: number, stats?: Record<string, number>) => ({
  memory_stats: { usage, limit: 1000, ...(stats === undefined ? {} : { stats }) },
});

describe('boxStats', () => {
  it.each([
    ['version 1', { total_inactive_file: 300, inactive_file: 100 }, 500],
    ['version 2', { inactive_file: 300 }, 500],
    ['version 1 with an empty cache', { total_inactive_file: 0, inactive_file: 0 }, 800],
    ['a cache that cannot be part of it', { inactive_file: 900 }, 800],
    ['an engine that tells no details', undefined, 800],
  ])('counts memory without the page cache: %s', (_what, stats, memoryBytes) => {
    expect(boxStats(sample(800, stats))).toMatchObject({ memoryBytes, memoryLimitBytes: 1000 });
  });

  it('counts processor time in seconds, and processes', () => {
    expect(
      boxStats({
        ...sample(1),
        cpu_stats: { cpu_usage: { total_usage: 2_500_000_000 } },
        pids_stats: { current: 7 },
      }),
    ).toMatchObject({ cpuSeconds: 2.5, pids: 7 });
  });

  it('knows the empty sample of a box that does not run', () => {
    expect(boxStats({ memory_stats: {}, pids_stats: {} })).toBeUndefined();
    expect(boxStats({})).toBeUndefined();
  });
});
