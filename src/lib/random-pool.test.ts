import { expect, it } from 'vitest';
import { randomPortion } from './random-pool.ts';

it('gives portions that are never the same, and do not change when the pool is filled anew', () => {
  const portions = Array.from({ length: 2000 }, () => randomPortion(12));
  const before = portions.map((portion) => portion.toString('hex'));
  randomPortion(4096);
  expect(new Set(before).size).toBe(2000);
  expect(portions.map((portion) => portion.toString('hex'))).toEqual(before);
});
