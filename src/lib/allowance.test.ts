import { describe, expect, it } from 'vitest';
import { Allowance } from './allowance.ts';

describe('an allowance', () => {
  it('gives its burst at once, then what the rate adds, and never more than the burst', () => {
    const allowance = new Allowance({ burst: 3, perSecond: 2 }, 0);
    const takenAt = (nowMs: number): number => {
      let taken = 0;
      while (allowance.take(1, nowMs)) taken++;
      return taken;
    };
    expect([takenAt(0), takenAt(400), takenAt(1000), takenAt(60_000)]).toEqual([3, 0, 2, 3]);
  });

  it('lets callers that reserve pass one after the other at the rate, and none wait for ever', () => {
    const allowance = new Allowance({ burst: 1, perSecond: 10 }, 0);
    expect([0, 1, 2].map(() => allowance.reserve(1, 0))).toEqual([0, 100, 200]);
    expect(allowance.reserve(1000, 0)).toBe(5000);
    // What was waited for is over: the rate counts from there.
    expect(allowance.reserve(1, 5100)).toBe(0);
  });
});
