import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { readJsonLines } from './json-lines.ts';

const schema = z.strictObject({ n: z.number() });

async function read(...chunks: readonly string[]): Promise<readonly number[]> {
  const body = Readable.from(
    chunks.map((chunk) => Buffer.from(chunk)),
    { objectMode: false },
  );
  const numbers: number[] = [];
  for await (const values of readJsonLines(body, schema)) numbers.push(...values.map(({ n }) => n));
  return numbers;
}

describe('a body of JSON lines', () => {
  it('is the same however it is cut, with and without a last line end', async () => {
    const text = '{"n":1}\n{"n":2}\n{"n":3}';
    for (let cut = 0; cut <= text.length; cut++)
      expect(await read(text.slice(0, cut), text.slice(cut))).toEqual([1, 2, 3]);
    expect(await read(`${text}\n`)).toEqual([1, 2, 3]);
    expect(await read('')).toEqual([]);
  });

  it.each([
    ['no JSON', '{"n":1}\nnothing\n', 'line 2'],
    ['an empty line', '{"n":1}\n\n', 'line 2'],
    ['another field', '{"n":1,"m":2}\n', 'body.m'],
    ['another type', '{"n":"1"}\n', 'body.n'],
    ['a line without an end', 'x'.repeat(70_000), 'too long'],
  ])('with %s is refused', async (_what, text, message) => {
    await expect(read(text)).rejects.toMatchObject({
      code: 'request_invalid',
      message: expect.stringContaining(message),
    });
  });
});
