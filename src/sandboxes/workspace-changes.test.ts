import { createHash } from 'node:crypto';
import { expect, it } from 'vitest';
import { contentHash } from '../lib/content-hash.ts';
import { CopiedExcludes } from '../policy/copied-excludes.ts';
import type { Files, TreeLimits } from '../porter/files.ts';
import { encodeTreeHeader } from '../porter/tree-records.ts';
import { decodeTree } from '../porter/tree-stream.ts';
import { keyOf, writeMark } from './baseline.ts';
import type { Marks } from './records.ts';
import { workspaceChanges } from './workspace-changes.ts';

const header = (path: string, sizeBytes: number): Buffer =>
  encodeTreeHeader({
    kind: 'file',
    path: Buffer.from(path),
    mode: 0o644,
    mtimeNs: 0n,
    sizeBytes,
    target: Buffer.alloc(0),
  });

/** A file that is one hole, as porter sends it. */
function hole(path: string, sizeBytes: number): Buffer {
  const head = header(path, sizeBytes);
  head.writeUInt32LE(6, 0);
  const end = Buffer.alloc(16);
  end.writeBigUInt64LE(BigInt(sizeBytes), 0);
  return Buffer.concat([head, end]);
}

interface Compared {
  readonly most?: number;
  readonly mostBytes?: number;
  readonly limits?: TreeLimits;
  readonly marks?: Marks;
}

/** What a porter says that keeps to no limit it was given. */
const compare = async (chunks: () => Generator<Buffer>, compared: Compared = {}) => {
  const data = async function* (): AsyncGenerator<Buffer> {
    yield* chunks();
  };
  const files = { getTree: () => decodeTree({ data, trust: (read) => read() }) } as unknown as Files;
  const excludes = new CopiedExcludes({ patterns: [], from: [] }, []);
  return await workspaceChanges(files, '/workspace', { marks: {}, excludes, ...compared });
};

it('[N5] hashes no more data than its limits, whatever a porter sends', async () => {
  const data = (path: string, bytes: number): Buffer =>
    Buffer.concat([header(path, bytes), Buffer.alloc(bytes, 'x')]);
  const limits = { fileBytes: 100_000, totalBytes: 250_000 };
  const found = await compare(
    function* () {
      yield data('a', 100_001);
      yield data('b', 100_000);
      yield data('c', 70_000);
      yield data('d', 1);
    },
    { limits },
  );
  expect(found.map(({ path, after }) => [path.toString(), after?.kind])).toEqual([
    ['a', 'large'],
    ['b', 'file'],
    ['c', 'large'],
    ['d', 'large'],
  ]);
});

it('[N5] compares holes of any size at once, and what comes after them', async () => {
  const began = performance.now();
  const found = await compare(function* () {
    for (let index = 0; index < 100; index++) yield hole(`a${index}`, 2 ** 52);
    yield Buffer.concat([header('c', 1), Buffer.from('x')]);
  });
  expect(found).toHaveLength(101);
  expect(found.every(({ after }) => after?.kind === 'file')).toBe(true);
  expect(performance.now() - began).toBeLessThan(5000);
});

it('finds a file unchanged whose zeros became holes, whenever its baseline was made', async () => {
  const zeros = Buffer.alloc(2 ** 20);
  const key = keyOf(Buffer.from('a'));
  const plain = createHash('sha256').update(zeros).digest('hex');
  for (const sha256 of [plain, contentHash(zeros)]) {
    const marks = { [key]: writeMark({ kind: 'file', mode: 0o644, sha256, sizeBytes: zeros.length }) };
    const told = (record: Buffer) =>
      compare(
        function* () {
          yield record;
        },
        { marks },
      );
    expect(await told(hole('a', zeros.length))).toEqual([]);
    expect(await told(Buffer.concat([header('a', zeros.length), zeros]))).toEqual([]);
    expect(await told(hole('a', zeros.length + 1))).toHaveLength(1);
    const other = Buffer.alloc(zeros.length);
    other[2 ** 19] = 1;
    expect(await told(Buffer.concat([header('a', zeros.length), other]))).toMatchObject([
      { before: { sha256 }, after: { sha256: contentHash(other) } },
    ]);
  }
});

it('refuses more changes than it keeps in memory', async () => {
  const many = (count: number) =>
    function* (): Generator<Buffer> {
      for (let index = 0; index < count; index++) yield header(`${index}`, 0);
    };
  expect(await compare(many(1000), { most: 1000 })).toHaveLength(1000);
  await expect(compare(many(1001), { most: 1000 })).rejects.toMatchObject({
    code: 'workspace_too_large',
    details: { limit: 1000 },
  });
});

it('[N5] refuses changes whose paths and links take more than it keeps in memory', async () => {
  const long = (count: number) =>
    function* (): Generator<Buffer> {
      for (let index = 0; index < count; index++) yield header(`${'x'.repeat(997)}${100 + index}`, 0);
    };
  expect(await compare(long(10), { mostBytes: 10_000 })).toHaveLength(10);
  await expect(compare(long(11), { mostBytes: 10_000 })).rejects.toMatchObject({
    code: 'workspace_too_large',
    details: { limitBytes: 10_000 },
  });
  const link = (target: string) =>
    function* (): Generator<Buffer> {
      yield encodeTreeHeader({
        kind: 'link',
        path: Buffer.from('a'),
        mode: 0o777,
        mtimeNs: 0n,
        sizeBytes: 0,
        target: Buffer.from(target),
      });
    };
  expect(await compare(link('x'.repeat(99)), { mostBytes: 100 })).toHaveLength(1);
  await expect(compare(link('x'.repeat(100)), { mostBytes: 100 })).rejects.toMatchObject({
    code: 'workspace_too_large',
  });
});

it('[N5] refuses a tree in which a path comes without the folders above it', async () => {
  const entry = (kind: 'directory' | 'file', path: string): Buffer =>
    encodeTreeHeader({
      kind,
      path: Buffer.from(path),
      mode: 0o755,
      mtimeNs: 0n,
      sizeBytes: 0,
      target: Buffer.alloc(0),
    });
  const folder = (path: string): Buffer => entry('directory', path);
  const file = (path: string): Buffer => entry('file', path);
  const told = (...records: readonly Buffer[]) =>
    compare(function* () {
      yield* records;
    });
  const whole = [folder('a'), folder('a/b'), file('a/b/c'), file('a/x'), folder('a/d'), file('z')];
  expect(await told(...whole)).toHaveLength(6);
  for (const records of [
    [file('a/b')],
    [file('a'), file('a/b')],
    [folder('a'), file('a/b/c')],
    [folder('a'), folder('b'), file('a/c')],
    [folder('aa'), file('a/c')],
  ])
    await expect(told(...records)).rejects.toMatchObject({ code: 'porter_protocol' });
});
