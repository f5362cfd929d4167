import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatSize, parseSize } from './sizes.ts';

describe('parseSize', () => {
  it.each([
    ['0', 0],
    ['1024', 1024],
    ['512m', 512 * 2 ** 20],
    ['4g', 4 * 2 ** 30],
    ['4G', 4 * 2 ** 30],
    ['1.5 GiB', 1.5 * 2 ** 30],
    ['64 kb', 64 * 2 ** 10],
    ['7b', 7],
  ])('reads %s', (text, bytes) => {
    expect(parseSize(text)).toBe(bytes);
  });

  it.each(['', 'm', '-1', '1e9', '1,5g', '4 gigs', '4gg', '0x10', 'NaN', '99999999t', '1 2'])(
    'refuses %j instead of guessing',
    (text) => {
      expect(parseSize(text)).toBeUndefined();
    },
  );

  it('reads back every whole number of bytes', () => {
    fc.assert(fc.property(fc.nat(), (bytes) => parseSize(String(bytes)) === bytes));
  });
});

describe('formatSize', () => {
  it.each([
    [0, '0 B'],
    [1023, '1023 B'],
    [1024, '1.0 KiB'],
    [15 * 2 ** 20, '15 MiB'],
    [1.5 * 2 ** 30, '1.5 GiB'],
  ])('writes %d as %s', (bytes, text) => {
    expect(formatSize(bytes)).toBe(text);
  });
});
