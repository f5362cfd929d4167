import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import type { Piece } from './content-hash.ts';
import { SparseWriter } from './sparse-writer.ts';

async function written(chunks: readonly Piece[]): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-sparse-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'file');
  const fd = openSync(path, 'wx');
  const writer = new SparseWriter(fd);
  for (const chunk of chunks) await writer.write(chunk);
  writer.end();
  closeSync(fd);
  return path;
}

const data = Buffer.alloc(5000, 'x');
const zeros = Buffer.alloc(100_000);

it.each([
  ['data, zeros, data', [data, zeros, data]],
  ['zeros at the end', [data, zeros]],
  ['nothing but zeros', [zeros, zeros]],
  ['zeros that are too few for a hole', [data, Buffer.alloc(10), data]],
  ['a last byte after zeros', [Buffer.concat([zeros, Buffer.from('x')])]],
  ['nothing', []],
])('writes what it was given: %s', async (_, chunks) => {
  expect(readFileSync(await written(chunks)).equals(Buffer.concat(chunks))).toBe(true);
});

it('takes no room on the disk for zeros, and takes it for data', async () => {
  const many = (piece: Buffer): readonly Buffer[] => Array.from({ length: 1000 }, () => piece);
  const used = (path: string): number => statSync(path).blocks * 512;
  expect(used(await written(many(zeros)))).toBeLessThan(1_000_000);
  expect(used(await written(many(Buffer.alloc(zeros.length, 'x'))))).toBeGreaterThan(90_000_000);
});

it('[N5] leaves holes of any length where it is told of them, also at the end', async () => {
  const path = await written([data, { holeBytes: 2 ** 40 }, data, { holeBytes: 2 ** 40 }, Buffer.alloc(0)]);
  const { size, blocks } = statSync(path);
  expect(size).toBe(2 ** 41 + 2 * data.length);
  expect(blocks * 512).toBeLessThan(1_000_000);
});

it('knows where it wrote data', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-sparse-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const fd = openSync(join(folder, 'file'), 'wx');
  onTestFinished(() => closeSync(fd));
  const writer = new SparseWriter(fd);
  for (const piece of [{ holeBytes: 10 }, data, data, zeros, data, { holeBytes: 5 }, Buffer.alloc(0)])
    await writer.write(piece);
  expect(writer.data).toEqual([10, 10_010, 110_010, 115_010]);
});
