import { describe, expect, it } from 'vitest';
import { carriesLabel } from './filters.ts';

describe('carriesLabel', () => {
  it.each([
    ['a', true],
    ['a=1', true],
    ['a=2', false],
    ['a=', false],
    ['b=x=y', true],
    ['b=x', false],
    ['c', false],
    ['constructor', false],
    ['empty=', true],
  ])('%s: %s', (wanted, expected) => {
    expect(carriesLabel({ a: '1', b: 'x=y', empty: '' }, wanted)).toBe(expected);
  });
});
