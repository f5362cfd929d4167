import { Readable } from 'node:stream';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { jsonLines } from './json-lines.ts';

async function read(chunks: readonly Buffer[]): Promise<unknown[]> {
  const values: unknown[] = [];
  for await (const value of jsonLines(Readable.from(chunks, { objectMode: false }))) values.push(value);
  return values;
}

describe('jsonLines', () => {
  it('reads the same values however the stream is chopped, with any line ends', async () => {
    const values = fc.array(fc.dictionary(fc.string(), fc.string({ unit: 'grapheme' })));
    const separator = fc.constantFrom('\n', '\r\n', '\n\n');
    await fc.assert(
      fc.asyncProperty(values, separator, fc.nat({ max: 20 }), async (objects, end, size) => {
        const bytes = Buffer.from(objects.map((object) => JSON.stringify(object) + end).join(''));
        const chunks: Buffer[] = [];
        for (let at = 0; at < bytes.length; at += size + 1) chunks.push(bytes.subarray(at, at + size + 1));
        expect(await read(chunks)).toEqual(objects.map((object) => ({ ...object })));
      }),
    );
  });

  it('reads a last line without an end', async () => {
    expect(await read([Buffer.from('{"a":1}\n{"b":'), Buffer.from('2}')])).toEqual([{ a: 1 }, { b: 2 }]);
  });

  it('refuses a line that is not JSON', async () => {
    await expect(read([Buffer.from('{"a":1}\n<html>\n')])).rejects.toMatchObject({ code: 'engine_protocol' });
  });

  it('refuses a line of more than 4 MiB before it is whole, and stops reading', async () => {
    let produced = 0;
    const endless = new Readable({
      read() {
        produced += 65_536;
        this.push(Buffer.alloc(65_536, 'a'));
      },
    });
    const reading = (async () => {
      for await (const value of jsonLines(endless)) return value;
      return undefined;
    })();
    await expect(reading).rejects.toMatchObject({ code: 'engine_protocol' });
    expect(produced).toBeLessThan(6 * 2 ** 20);
    expect(endless.destroyed).toBe(true);
  });
});
