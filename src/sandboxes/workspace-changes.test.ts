import { expect, it } from 'vitest';
import { CopiedExcludes } from '../policy/copied-excludes.ts';
import type { Files } from '../porter/files.ts';
import { encodeTreeHeader } from '../porter/tree-records.ts';
import { decodeTree } from '../porter/tree-stream.ts';
import { mostCompared } from './baseline.ts';
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

/** What a porter says that keeps to no limit it was given. */
const compare = async (
  chunks: () => Generator<Buffer>,
  limit: { readonly most?: number; readonly mostBytes?: number } = {},
) => {
  const data = async function* (): AsyncGenerator<Buffer> {
    yield* chunks();
  };
  const files = { getTree: () => decodeTree({ data, trust: (read) => read() }) } as unknown as Files;
  const excludes = new CopiedExcludes({ patterns: [], from: [] }, []);
  return await workspaceChanges(files, '/workspace', { marks: {}, excludes, ...limit });
};

it('hashes no more than its limits, whatever sizes a porter claims', async () => {
  const most = mostCompared.fileBytes;
  const found = await compare(function* () {
    yield hole('a', 2 ** 52);
    yield hole('b', most + 1);
    yield Buffer.concat([header('c', 1), Buffer.from('x')]);
  });
  expect(found.map(({ path, after }) => [path.toString(), after])).toEqual([
    ['a', { kind: 'large', mode: 0o644, sizeBytes: 2 ** 52 }],
    ['b', { kind: 'large', mode: 0o644, sizeBytes: most + 1 }],
    ['c', expect.objectContaining({ kind: 'file', sizeBytes: 1 })],
  ]);
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
