import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatDuration, parseDuration } from './durations.ts';

describe('parseDuration', () => {
  it.each([
    ['500ms', 500],
    ['90s', 90_000],
    ['1.5h', 5_400_000],
    ['1h30m', 5_400_000],
    ['2d', 172_800_000],
    ['1m500ms', 60_500],
  ])('reads %s', (text, ms) => {
    expect(parseDuration(text)).toBe(ms);
  });

  it.each(['', '30', 's', '-1s', '1 h', '1h 30m', '30m1h', '1h1h', '1w', '1e3s', '999999999999d'])(
    'refuses %j instead of guessing',
    (text) => {
      expect(parseDuration(text)).toBeUndefined();
    },
  );

  it('reads back what formatDuration writes', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 10_000_000 }), (seconds) => {
        expect(parseDuration(formatDuration(seconds * 1000))).toBe(seconds * 1000);
      }),
    );
  });
});
