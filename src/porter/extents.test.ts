import { expect, it } from 'vitest';
import { isHole } from '../lib/content-hash.ts';
import { decodeExtents, ExtentDecoder, encodeExtents } from './extents.ts';

const extent = (offset: number, text: string): Buffer => {
  const head = Buffer.alloc(16);
  head.writeBigUInt64LE(BigInt(offset), 0);
  head.writeBigUInt64LE(BigInt(text.length), 8);
  return Buffer.concat([head, Buffer.from(text)]);
};

function decode(pieces: readonly Buffer[], from?: number, until?: number): string {
  const decoder = new ExtentDecoder(from, until);
  const found = pieces.flatMap((piece) => [...decoder.push(piece)]);
  decoder.end();
  return found.map((piece) => (isHole(piece) ? '.'.repeat(piece.holeBytes) : piece.toString())).join('');
}

it('has holes between its extents, after any chopping of the stream', () => {
  const bytes = Buffer.concat([extent(2, 'ab'), extent(6, 'c'), extent(10, '')]);
  for (let cut = 0; cut <= bytes.length; cut++)
    expect(decode([bytes.subarray(0, cut), bytes.subarray(cut)])).toBe('..ab..c...');
  expect(decode([extent(7, 'x'), extent(8, '')], 5, 8)).toBe('..x');
});

it.each([
  ['goes back', [extent(4, 'ab'), extent(2, 'c'), extent(10, '')]],
  ['begins before the part that was asked for', [extent(0, 'ab'), extent(10, '')], 1],
  ['goes beyond the part that was asked for', [extent(9, 'ab'), extent(11, '')], 0, 10],
  ['goes beyond all numbers', [extent(2 ** 60, ''), extent(2, '')]],
  ['comes after the end', [extent(3, ''), extent(4, 'a')]],
])('is refused if one %s', (_, bytes, from?: number, until?: number) => {
  expect(() => decode(bytes, from, until)).toThrow(expect.objectContaining({ code: 'porter_protocol' }));
});

it('that breaks off is noticed', () => {
  const bytes = Buffer.concat([extent(2, 'ab'), extent(4, '')]);
  for (let length = 0; length < bytes.length; length++)
    expect(() => decode([bytes.subarray(0, length)])).toThrow('breaks off');
});

it('is the same again where there are no holes', async () => {
  const source = async function* (): AsyncGenerator<Buffer> {
    yield Buffer.from('abc');
    yield Buffer.from('def');
  };
  const found: string[] = [];
  for await (const piece of decodeExtents(encodeExtents(source(), 3), 3, 9)) found.push(String(piece));
  expect(found.join('')).toBe('abcdef');
});
