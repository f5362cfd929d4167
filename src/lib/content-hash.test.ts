import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { ContentHash, contentHash, contentHashPattern, holeBlockBytes } from './content-hash.ts';

const block = holeBlockBytes;
const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

/** Runs of one byte: 0 is a candidate for a hole. */
const run = fc.record({
  byte: fc.constantFrom(0, 0, 1, 2),
  length: fc.oneof(
    fc.integer({ min: 1, max: 3 * block }),
    fc.constantFrom(1, block - 1, block, block + 1, 2 * block),
  ),
});
const runs = fc.array(run, { maxLength: 6 });
const bytesOf = (all: readonly { readonly byte: number; readonly length: number }[]): Buffer =>
  Buffer.concat(all.map(({ byte, length }) => Buffer.alloc(length, byte)));

it('[N5] is the same for holes and for zeros that are written out, in any pieces', () => {
  fc.assert(
    fc.property(runs, fc.array(fc.nat(), { maxLength: 6 }), (all, cuts) => {
      const content = bytesOf(all);
      const expected = contentHash(content);
      const holes = new ContentHash();
      for (const { byte, length } of all)
        holes.update(byte === 0 ? { holeBytes: length } : Buffer.alloc(length, byte));
      expect(holes.digest()).toBe(expected);
      const chopped = new ContentHash();
      const places = cuts.map((cut) => cut % (content.length + 1)).sort((a, b) => a - b);
      for (const [index, from] of [0, ...places].entries())
        chopped.update(content.subarray(from, places[index] ?? content.length));
      expect(chopped.digest()).toBe(expected);
      expect(expected).toMatch(contentHashPattern);
    }),
    { numRuns: 150 },
  );
});

it('is plain SHA-256 without a whole block of zeros', () => {
  for (const content of [
    Buffer.alloc(0),
    Buffer.from('text'),
    Buffer.alloc(block - 1),
    Buffer.concat([Buffer.from('x'), Buffer.alloc(2 * block - 2)]),
    Buffer.alloc(3 * block, 1),
  ])
    expect(contentHash(content)).toBe(sha256(content));
  expect(contentHash(Buffer.alloc(block))).toMatch(/^holes:/);
});

it('differs where data, places or sizes differ', () => {
  const data = Buffer.alloc(block, 1);
  const hole = { holeBytes: block };
  const of = (...pieces: readonly (Buffer | typeof hole)[]): string => {
    const hash = new ContentHash();
    for (const piece of pieces) hash.update(piece);
    return hash.digest();
  };
  const all = [
    of(data, hole),
    of(hole, data),
    of(hole, hole, data),
    of(hole, data, hole),
    of(hole, data, data),
    of(data, hole, data),
    of(hole),
    of(hole, Buffer.from([0])),
    of(data),
    of(Buffer.alloc(block, 2), hole),
  ];
  expect(new Set(all).size).toBe(all.length);
});

it('[N5] hashes 1 PiB of holes at once, and counts only data', () => {
  const began = performance.now();
  const hash = new ContentHash().update({ holeBytes: 2 ** 50 }).update(Buffer.from('end'));
  expect(hash.digest()).toMatch(/^holes:/);
  expect(hash.hashedBytes).toBe(3);
  expect(performance.now() - began).toBeLessThan(1000);
});
