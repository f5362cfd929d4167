import { describe, expect, it } from 'vitest';
import { deferred } from '../lib/deferred.ts';
import { LenderStarts } from './lender-starts.ts';

const user = { uid: 64_100, gid: 64_100 };

describe('starts of a lender', () => {
  it('are one at a time, and rarer the more often porter asks', async () => {
    let nowMs = 0;
    const begun: number[] = [];
    const starts = new LenderStarts({
      engine: { startLender: async () => void begun.push(nowMs) },
      now: () => nowMs,
      report: () => {},
    });
    for (; nowMs < 300_000; nowMs += 100) await starts.wanted('box', user);
    expect(begun).toEqual([0, 1000, 3000, 7000, 15_000, 31_000, 63_000, 123_000, 183_000, 243_000]);
  });

  it('are not begun while one is under way, and may fail', async () => {
    const done = deferred<void>();
    const reported: unknown[] = [];
    let begun = 0;
    const starts = new LenderStarts({
      engine: {
        startLender: async () => {
          begun++;
          await done.promise;
        },
      },
      now: () => 0,
      report: (error) => void reported.push(error),
    });
    const both = [starts.wanted('box', user), starts.wanted('box', user)];
    done.reject(new Error('no process left'));
    await Promise.all(both);
    expect(begun).toBe(1);
    expect(reported).toMatchObject([{ message: 'no process left' }]);
  });
});
