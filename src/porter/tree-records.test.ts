import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RecordDecoder } from './record-decoder.ts';
import { encodeTreeHeader, isTreePath, TreeDecoder, type TreeHeader } from './tree-records.ts';

interface Item {
  readonly header: TreeHeader;
  readonly content: Buffer;
}

const part = fc
  .uint8Array({ minLength: 1, maxLength: 12 })
  .map((bytes) => Buffer.from(bytes.map((byte) => (byte === 0 || byte === 0x2f ? 0x61 : byte))))
  .filter((bytes) => !/^\.\.?$/.test(bytes.toString('latin1')));
const path = fc
  .array(part, { minLength: 1, maxLength: 5 })
  .map((parts) =>
    Buffer.concat(parts.flatMap((bytes, index) => (index === 0 ? [bytes] : [Buffer.from('/'), bytes]))),
  );
const item: fc.Arbitrary<Item> = fc
  .record({
    kind: fc.constantFrom('file', 'directory', 'link', 'other'),
    path,
    mode: fc.integer({ min: 0, max: 0o777 }),
    mtimeNs: fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
    content: fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
    target: part,
  })
  .map(({ content, target, ...rest }) => {
    const body = rest.kind === 'file' ? content : Buffer.alloc(0);
    const header = {
      ...rest,
      sizeBytes: body.length,
      target: rest.kind === 'link' ? target : Buffer.alloc(0),
    };
    return { header, content: body };
  });

/** The bytes in pieces, cut where the numbers say. */
function chop(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const places = cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b);
  return [0, ...places].map((from, index) => bytes.subarray(from, places[index] ?? bytes.length));
}

function decode(pieces: readonly Buffer[]): Item[] {
  const decoder = new TreeDecoder();
  const items: Array<{ header: TreeHeader; parts: Buffer[] }> = [];
  for (const piece of pieces) {
    for (const event of decoder.push(piece)) {
      if (event.type === 'entry') items.push({ header: event.header, parts: [] });
      else items.at(-1)?.parts.push(event.type === 'body' ? event.data : Buffer.alloc(event.bytes));
    }
  }
  decoder.end();
  return items.map(({ header, parts }) => ({ header, content: Buffer.concat(parts) }));
}

const encode = ({ header, content }: Item): Buffer => Buffer.concat([encodeTreeHeader(header), content]);

const good: TreeHeader = {
  kind: 'file',
  path: Buffer.from('a/b'),
  mode: 0o644,
  mtimeNs: 0n,
  sizeBytes: 0,
  target: Buffer.alloc(0),
};

describe('tree records', () => {
  it('are the same after any chopping of the stream', () => {
    fc.assert(
      fc.property(fc.array(item, { maxLength: 8 }), fc.array(fc.nat(), { maxLength: 20 }), (items, cuts) => {
        expect(decode(chop(Buffer.concat(items.map(encode)), cuts))).toEqual(items);
      }),
    );
  });

  it('end in a typed error, or decode, whatever the bytes are', () => {
    fc.assert(
      fc.property(item, fc.nat(), fc.integer({ min: 0, max: 255 }), (original, at, byte) => {
        const bytes = encode(original);
        bytes[at % bytes.length] = byte;
        try {
          for (const { header } of decode([bytes])) expect(isTreePath(header.path)).toBe(true);
        } catch (error) {
          expect(error).toMatchObject({ code: 'porter_protocol' });
        }
      }),
    );
  });

  it.each([
    ['an absolute path', { path: Buffer.from('/etc/passwd') }],
    ['a path that goes up', { path: Buffer.from('a/../../b') }],
    ['an empty path', { path: Buffer.alloc(0) }],
    ['an empty part', { path: Buffer.from('a//b') }],
    ['a NUL', { path: Buffer.from('a\0b') }],
    ['a path that is too long', { path: Buffer.alloc(5000, 'a') }],
    ['a mode beyond permissions', { mode: 0o4755 }],
    ['a directory with content', { kind: 'directory' as const, sizeBytes: 4 }],
    ['a link without target', { kind: 'link' as const }],
    ['a file with target', { target: Buffer.from('x') }],
    ['a target with a NUL', { kind: 'link' as const, target: Buffer.from('x\0') }],
  ])('with %s are refused', (_name, change) => {
    expect(decode([encodeTreeHeader(good)])).toHaveLength(1);
    expect(() => decode([encodeTreeHeader({ ...good, ...change })])).toThrow(
      expect.objectContaining({ code: 'porter_protocol' }),
    );
  });

  it('that break off are noticed', () => {
    const bytes = encode({ header: { ...good, sizeBytes: 5 }, content: Buffer.from('12345') });
    for (let length = 1; length < bytes.length; length++) {
      expect(() => decode([bytes.subarray(0, length)])).toThrow('breaks off');
    }
  });
});

describe('a file that comes as extents', () => {
  const sparse = (sizeBytes: number, ...extents: readonly (readonly [number, string])[]): Buffer => {
    const header = encodeTreeHeader({ ...good, kind: 'file', sizeBytes });
    header.writeUInt32LE(6, 0);
    const parts = [...extents, [sizeBytes, ''] as const].map(([offset, text]) => {
      const place = Buffer.alloc(16);
      place.writeBigUInt64LE(BigInt(offset), 0);
      place.writeBigUInt64LE(BigInt(text.length), 8);
      return Buffer.concat([place, Buffer.from(text)]);
    });
    return Buffer.concat([header, ...parts]);
  };

  it('has zeros between them, after any chopping of the stream', () => {
    const bytes = Buffer.concat([sparse(10, [2, 'ab'], [6, 'c']), sparse(3), encodeTreeHeader(good)]);
    for (let cut = 0; cut <= bytes.length; cut++) {
      expect(decode(chop(bytes, [cut])).map(({ content }) => content.toString('latin1'))).toEqual([
        '\0\0ab\0\0c\0\0\0',
        '\0\0\0',
        '',
      ]);
    }
  });

  it.each([
    ['goes back', sparse(10, [4, 'ab'], [2, 'c'])],
    ['overlaps', sparse(10, [4, 'ab'], [5, 'c'])],
    ['goes beyond the end', sparse(4, [3, 'ab'])],
    ['is empty in the middle', sparse(10, [4, '']).subarray(0, -16)],
  ])('is refused if one %s', (_name, bytes) => {
    expect(() => decode([bytes])).toThrow(expect.objectContaining({ code: 'porter_protocol' }));
  });
});

describe('records of a kind and bytes', () => {
  it('are the same after any chopping of the stream', () => {
    const record = fc.record({ kind: fc.nat(), bytes: part });
    fc.assert(
      fc.property(fc.array(record), fc.array(fc.nat(), { maxLength: 20 }), (records, cuts) => {
        const bytes = Buffer.concat(
          records.map(({ kind, bytes: name }) => {
            const head = Buffer.alloc(8);
            head.writeUInt32LE(kind, 0);
            head.writeUInt32LE(name.length, 4);
            return Buffer.concat([head, name]);
          }),
        );
        const decoder = new RecordDecoder(255);
        expect(chop(bytes, cuts).flatMap((piece) => [...decoder.push(piece)])).toEqual(records);
        decoder.end();
      }),
    );
  });
});
