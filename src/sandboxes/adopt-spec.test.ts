import { expect, it } from 'vitest';
import { parseSpec } from '../protocol/parse-spec.ts';
import { fixedDifferences } from './adopt-spec.ts';

it('[O1][R4] a default image makes a difference only to a sandbox that uses it', () => {
  const differences = (before: object, now: object) =>
    fixedDifferences(parseSpec(before), parseSpec(now), false);
  const [a, b] = [{ images: { default: 'a' } }, { images: { default: 'b', strict: 's' } }];
  expect(differences(a, b)).toEqual(['images.default']);
  expect(differences({}, a)).toEqual(['images']);
  expect(differences(a, { images: { default: 'a', strict: 's' } })).toEqual([]);
  expect(differences({ ...a, profile: 'strict' }, { profile: 'strict' })).toEqual([]);
  for (const named of [{ image: 'x' }, { agent: 'claude' }]) {
    expect(differences({ ...a, ...named }, { ...b, ...named })).toEqual([]);
  }
});
