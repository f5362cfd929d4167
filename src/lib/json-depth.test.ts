import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isDeeperThan } from './json-depth.ts';

const depthOf = (value: unknown): number =>
  typeof value === 'object' && value !== null ? 1 + Math.max(0, ...Object.values(value).map(depthOf)) : 0;

describe('[N5] the depth of a JSON text', () => {
  it('is that of what it stands for, whatever is in its strings', () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 6 }), fc.integer({ min: 0, max: 8 }), (json, most) => {
        expect(isDeeperThan(most, Buffer.from(json))).toBe(depthOf(JSON.parse(json)) > most);
      }),
    );
    expect(isDeeperThan(1, Buffer.from('{"a":"[[[\\\\\\"[[["}'))).toBe(false);
    expect(isDeeperThan(1, Buffer.from('["\\\\",[]]'))).toBe(true);
  });

  it('of a bomb is known after its first levels', () => {
    expect(isDeeperThan(100, Buffer.alloc(16 * 2 ** 20, '['))).toBe(true);
    expect(isDeeperThan(100, Buffer.alloc(16 * 2 ** 20, '[]'))).toBe(false);
  });
});
