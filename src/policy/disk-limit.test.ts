import { describe, expect, it } from 'vitest';
import {
  chooseVictim,
  type DiskSample,
  isDue,
  isReserveBreached,
  type LastSize,
  mostBytes,
  reserveOf,
  scarceResource,
} from './disk-limit.ts';

const gib = 2 ** 30;
const mib = 2 ** 20;

const disk = (free: number, total = 200 * gib, files = { free: 9e6, total: 1e7 }): DiskSample => ({
  free: { bytes: free, files: files.free },
  total: { bytes: total, files: files.total },
});

describe('[N5] the reserve of a disk', () => {
  it.each([
    ['a large disk', 252 * gib, 5 * gib],
    ['one of 100 GiB', 100 * gib, 5 * gib],
    ['a small one', 20 * gib, gib],
    ['the disk of a test', gib, 0.05 * gib],
  ])('of %s', (_name, total, reserve) => {
    expect(reserveOf(disk(0, total), 'bytes')).toBe(reserve);
  });

  it.each([
    ['there is room', disk(100 * gib), undefined, undefined],
    ['less than twice the reserve', disk(9 * gib), undefined, 'bytes'],
    ['less than the reserve', disk(4 * gib), 'bytes', 'bytes'],
    ['few files left', disk(100 * gib, undefined, { free: 8e5, total: 1e7 }), undefined, 'files'],
    ['hardly any file left', disk(100 * gib, undefined, { free: 4e5, total: 1e7 }), 'files', 'files'],
    ['no bound of files', disk(100 * gib, undefined, { free: 0, total: 0 }), undefined, undefined],
  ])('%s', (_name, sample, now, soon) => {
    expect(scarceResource(sample)).toBe(now);
    expect(scarceResource(sample, 2)).toBe(soon);
  });
});

describe('[N5] a container is measured', () => {
  const limit = 20 * gib;
  const free = 100 * gib;
  const last = (more: Partial<LastSize> = {}): LastSize => ({
    bytes: 8 * gib,
    atMs: 0,
    tookMs: 100,
    freeBytes: free,
    ...more,
  });
  const due = (
    known: LastSize | undefined,
    nowMs: number,
    sample: DiskSample | undefined = disk(free),
  ): boolean => isDue(known, limit, { nowMs, sample, periodMs: 60_000 });
  const unseen = (known: LastSize, nowMs: number): boolean =>
    isDue(known, limit, { nowMs, sample: undefined, periodMs: 60_000 });

  it.each([
    ['when it was never measured', due(undefined, 0), true],
    ['not while the disk is idle', due(last(), 61_000), false],
    ['after ten periods even if the disk is idle', due(last(), 600_000), true],
    ['every period while the disk changes', due(last(), 60_000, disk(free - 10 * mib)), true],
    ['not before the period is over', due(last(), 59_000, disk(free - 10 * mib)), false],
    ['every period when space was freed', due(last(), 60_000, disk(free + gib)), true],
    ["at once when the disk lost the container's headroom", due(last(), 2000, disk(free - 12 * gib)), true],
    ['not when the disk lost less than that', due(last(), 2000, disk(free - 11 * gib)), false],
    [
      'not for a small loss when it is near its limit',
      due(last({ bytes: 20 * gib - mib }), 2000, disk(free - 100 * mib)),
      false,
    ],
    [
      'after a step of 1/64 when it is near its limit',
      due(last({ bytes: 20 * gib - mib }), 2000, disk(free - 330 * mib)),
      true,
    ],
    [
      'after as long as it took when it may have reached its limit',
      due(last({ tookMs: 5000 }), 5000, disk(free - 12 * gib)),
      true,
    ],
    ['not before that', due(last({ tookMs: 5000 }), 4900, disk(free - 12 * gib)), false],
    [
      'not before a pause of ten measurements otherwise',
      due(last({ tookMs: 20_000 }), 190_000, disk(free - 10 * mib)),
      false,
    ],
    ['after that pause', due(last({ tookMs: 20_000 }), 200_000, disk(free - 10 * mib)), true],
    ['once in a period if that fails', due(last({ missed: 'failed' }), 59_000, disk(free - 30 * gib)), false],
    [
      'in steps of the reserve when space is scarce',
      due(last({ freeBytes: 10 * gib }), 2000, disk(9 * gib)),
      true,
    ],
    [
      'not while a full disk stays as it is',
      due(last({ freeBytes: 9 * gib }), 2000, disk(9 * gib - mib)),
      false,
    ],
    ['at once when its limit was lowered below its size', due(last({ bytes: 21 * gib }), 2000), true],
    ['every period when the disk cannot be sampled', unseen(last(), 60_000), true],
    ['not before that period', unseen(last(), 59_000), false],
    ['less often when measuring takes long', unseen(last({ tookMs: 20_000 }), 60_000), false],
  ])('%s', (_name, found, expected) => {
    expect(found).toBe(expected);
  });
});

describe('[N5] a container that cannot be measured in time', () => {
  const known: LastSize = { bytes: 8 * gib, freeBytes: 100 * gib, atMs: 0, tookMs: 60_000 };
  const last: LastSize = { ...known, missed: 'late' };
  it.each([
    ['may use all that the disk lost', last, disk(90 * gib), 18 * gib],
    ['uses no less than before', last, disk(110 * gib), 8 * gib],
    ['may use anything when the disk cannot be sampled', last, undefined, Number.POSITIVE_INFINITY],
    ['is not estimated when its size is known', known, disk(90 * gib), undefined],
    ['is not estimated when the engine failed', { ...last, missed: 'failed' as const }, disk(0), undefined],
  ])('%s', (_name, one, sample, expected) => {
    expect(mostBytes(one, sample)).toBe(expected);
  });
});

describe('[N5] below the reserve', () => {
  const none = undefined;
  it.each([
    ['the sandbox that grew most is stopped', { a: [gib, 0], b: [3 * gib, 0], c: [0, 0] }, 4 * gib, 'b'],
    ['one that cannot be judged is stopped first', { a: [30 * gib, 0], b: [none, none] }, 4 * gib, 'b'],
    ['one that is not measured in time counts what it wrote', { a: [gib, 0], b: [none, 0] }, gib, 'a'],
    ['none is stopped if none grew by a tenth of it', { a: [0.4 * gib, 0], b: [-gib, 0] }, 0.4 * gib, none],
    ['none is stopped if none runs', {}, 4 * gib, none],
    [
      'one that hides what it writes is stopped before one that grew a little',
      { innocent: [0.6 * gib, 0.7 * gib], attacker: [0, 4 * gib] },
      4 * gib,
      'attacker',
    ],
    [
      'one that removes what it writes is not suspected while sizes explain the loss',
      { builder: [0.1 * gib, 90 * gib], greedy: [3 * gib, 3 * gib] },
      4 * gib,
      'greedy',
    ],
  ] as const)('%s', (_name, figures, lost, chosen) => {
    const sandboxes = Object.entries(figures).map(([id, [growth, written]]) => ({ id, growth, written }));
    expect(chooseVictim(sandboxes, { reserve: 5 * gib, lost })?.id).toBe(chosen);
  });

  it.each([
    ['no breach above it', 5.1 * gib, undefined, false],
    ['a breach at the first sample below it', 4.9 * gib, undefined, true],
    ['no second breach at the same level', 4.9 * gib, 4.9 * gib, false],
    ['no second breach for a small loss', 4.5 * gib, 4.9 * gib, false],
    ['a second breach after a tenth of it', 4.3 * gib, 4.9 * gib, true],
  ])('%s', (_name, free, lowest, asks) => {
    expect(isReserveBreached(free, 5 * gib, lowest)).toBe(asks);
  });
});
