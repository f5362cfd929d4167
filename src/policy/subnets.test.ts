import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatSubnet, freeSubnets, parseSubnet, subnetCount, subnetsOverlap } from './subnets.ts';

const subnet = (text: string) => {
  const parsed = parseSubnet(text);
  if (parsed === undefined) throw new Error(`${text} is no subnet`);
  return parsed;
};

describe('subnets', () => {
  it.each([
    ['10.0.0.0/8', '10.213.0.0/24', true],
    ['10.213.0.0/24', '10.0.0.0/8', true],
    ['10.213.0.0/24', '10.213.1.0/24', false],
    ['198.18.0.0/28', '198.18.0.16/28', false],
    ['198.18.0.5/28', '198.18.0.0/28', true],
    ['0.0.0.0/0', '198.18.0.0/28', true],
  ])('%s and %s overlap: %s', (a, b, expected) => {
    expect(subnetsOverlap(subnet(a), subnet(b))).toBe(expected);
  });

  it.each(['', '10.0.0.0', '10.0.0.0/33', '300.0.0.0/8', 'fd00::/8', '10.0.0/8'])('%j is none', (text) => {
    expect(parseSubnet(text)).toBeUndefined();
  });

  it('[A1] are thousands, none of which overlaps another or one that is taken', () => {
    const taken = [subnet('198.18.4.0/22'), subnet('10.0.0.0/8')];
    const all = [...freeSubnets(taken, 77)];
    expect(all).toHaveLength(subnetCount - 64);
    expect(new Set(all.map(({ base }) => base)).size).toBe(all.length);
    expect(all.every((free) => taken.every((other) => !subnetsOverlap(free, other)))).toBe(true);
    expect(formatSubnet(all[0] ?? subnet('0.0.0.0/0'))).toBe('198.18.8.0/28');
  });

  it('begin where they are told to, and read as they are written', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: subnetCount - 1 }), (first) => {
        const next = freeSubnets([], first).next();
        if (next.done === true) throw new Error('there is none');
        expect(parseSubnet(formatSubnet(next.value))).toEqual(next.value);
        expect((next.value.base / 16) % subnetCount).toBe(first);
      }),
    );
  });
});
