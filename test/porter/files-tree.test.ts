import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  lstat,
  mkdir,
  readdir,
  readFile,
  readlink,
  rename,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import type { TreeEntry, TreeSource } from '../../src/porter/tree-stream.ts';
import { bytesOf, filesInFolder, gather } from '../support/porter-files.ts';

type Kept = Omit<TreeEntry, 'body' | 'pieces'> & { readonly content: Buffer };

async function keep(entries: AsyncIterable<TreeEntry>): Promise<ReadonlyMap<string, Kept>> {
  const kept = new Map<string, Kept>();
  for await (const { body, pieces: _, ...header } of entries) {
    kept.set(header.path.toString('latin1'), { ...header, content: await bytesOf(body) });
  }
  return kept;
}

const file = (path: string | Buffer, body: string | Buffer, mode?: number): TreeSource => ({
  kind: 'file',
  path,
  body: Buffer.from(body as Buffer),
  ...(mode === undefined ? {} : { mode }),
});

describe('a tree', () => {
  it('keeps the names of one file together, and makes none of what is not in the tree', async () => {
    const { files, at } = await filesInFolder();
    const hardLink = (path: string, target: string): TreeSource => ({ kind: 'hardlink', path, target });
    await mkdir(at('root'));
    await writeFile(at('outside'), 'outside');
    await symlink(at('outside'), at('root', 'link'));
    const put = (...entries: TreeSource[]): Promise<number> => files.putTree(at('root'), entries);
    await put(
      { kind: 'directory', path: 'a' },
      { kind: 'directory', path: 'b' },
      file('a/one', 'same'),
      file('b/two', 'other'),
      hardLink('b/two', 'a/one'),
      hardLink('three', 'b/two'),
    );
    const inodes = await Promise.all(['a/one', 'b/two', 'three'].map((path) => stat(at('root', path))));
    expect(new Set(inodes.map(({ ino }) => ino)).size).toBe(1);
    expect(await readFile(at('root', 'three'), 'utf8')).toBe('same');
    const refusals: [string, string, number][] = [
      ['x', 'none', 2],
      ['x', 'link', 22],
      ['x', 'a', 22],
      ['x', '../outside', 22],
      ['x', '/etc/passwd', 22],
      ['x', 'link/x', 40],
      ['three', 'three', 22],
      ['a', 'three', 21],
    ];
    for (const [path, target, errno] of refusals) {
      await expect(put(hardLink(path, target))).rejects.toMatchObject({ details: { errno } });
    }
    expect((await stat(at('root', 'three'))).nlink).toBe(3);
    expect((await stat(at('outside'))).nlink).toBe(1);
  });

  it('gives a file its holes back', async () => {
    const { files, at } = await filesInFolder();
    const body = Buffer.alloc(1_000_000);
    body.write('begin', 0);
    body.write('end', body.length - 3);
    await files.putTree(at(), [file('holes', body), file('zeros', Buffer.alloc(300_000))]);
    expect(body.equals(await readFile(at('holes')))).toBe(true);
    expect(Buffer.alloc(300_000).equals(await readFile(at('zeros')))).toBe(true);
    expect((await stat(at('holes'))).blocks * 512).toBeLessThan(500_000);
  });

  it('goes in and out with modes, times, links and names of any bytes', async () => {
    const { files, at } = await filesInFolder();
    const mtimeNs = 1_600_000_000_123_456_789n;
    const strange = Buffer.from([0x6e, 0x0a, 0xff, 0x20]);
    const big = randomBytes(300_000);
    const chunks = async function* (): AsyncGenerator<Buffer> {
      for (let offset = 0; offset < big.length; offset += 7_000) yield big.subarray(offset, offset + 7_000);
    };
    const put = await files.putTree(at(), [
      { kind: 'directory', path: 'locked', mode: 0o500, mtimeNs },
      file('locked/inner', 'inner'),
      { kind: 'directory', path: 'a' },
      { kind: 'directory', path: 'a/b' },
      { kind: 'file', path: 'a/b/run', mode: 0o4755, mtimeNs, body: Buffer.from('#!') },
      file('a/empty', ''),
      { kind: 'file', path: 'a/big', body: { sizeBytes: big.length, chunks: chunks() } },
      { kind: 'link', path: 'a/link', target: '/etc/passwd', mtimeNs },
      file(strange, 'strange'),
      file('n'.repeat(255), 'long'),
    ]);
    expect(put).toBe(10);
    expect((await stat(at('a', 'b', 'run'))).mode & 0o7777).toBe(0o755);
    expect((await stat(at('a', 'b', 'run'), { bigint: true })).mtimeNs).toBe(mtimeNs);
    expect((await stat(at('locked'))).mode & 0o7777).toBe(0o500);
    expect((await stat(at('locked'), { bigint: true })).mtimeNs).toBe(mtimeNs);
    expect(await readlink(at('a', 'link'))).toBe('/etc/passwd');
    const got = await keep(files.getTree(at()));
    expect(got.size).toBe(10);
    expect(got.get('a/big')?.content.equals(big)).toBe(true);
    expect(got.get('a/b/run')).toMatchObject({ kind: 'file', mode: 0o755, mtimeNs, sizeBytes: 2 });
    expect(got.get('a/link')).toMatchObject({ kind: 'link', mtimeNs, target: Buffer.from('/etc/passwd') });
    expect(got.get('locked')).toMatchObject({ kind: 'directory', mode: 0o500 });
    expect(got.get(strange.toString('latin1'))?.content.toString()).toBe('strange');
    const order = [...got.keys()];
    expect(order.indexOf('a')).toBeLessThan(order.indexOf('a/b'));
    expect(order.indexOf('a/b')).toBeLessThan(order.indexOf('a/b/run'));
  });

  it('of 10,000 small files makes the round trip', async () => {
    const { files, at } = await filesInFolder();
    const tree = function* (): Generator<TreeSource> {
      for (let folder = 0; folder < 100; folder++) {
        yield { kind: 'directory', path: `d${folder}` };
        for (let index = 0; index < 100; index++)
          yield file(`d${folder}/f${index}`, `content ${folder} ${index}`);
      }
    };
    expect(await files.putTree(at(), tree())).toBe(10_100);
    const got = await keep(files.getTree(at()));
    expect(got.size).toBe(10_100);
    expect(got.get('d42/f17')?.content.toString()).toBe('content 42 17');
  });

  it('tells by name what it does not send', async () => {
    const { files, at } = await filesInFolder();
    execFileSync('mkfifo', [at('fifo')]);
    await writeFile(at('file'), 'x');
    const got = await keep(files.getTree(at()));
    expect(got.get('fifo')).toMatchObject({ kind: 'other', sizeBytes: 0 });
    expect(got.get('file')).toMatchObject({ kind: 'file' });
  });

  it('may be read in part: bodies that nobody reads are passed over', async () => {
    const { files, at } = await filesInFolder();
    for (const name of ['a', 'b', 'c']) await writeFile(at(name), randomBytes(200_000));
    const names: string[] = [];
    for await (const { path, body } of files.getTree(at())) {
      names.push(path.toString());
      if (names.length === 2) for await (const chunk of body) if (chunk.length > 0) break;
    }
    expect(names.sort()).toEqual(['a', 'b', 'c']);
    for await (const _ of files.getTree(at())) break;
    expect(await files.stat(at())).toMatchObject({ kind: 'directory' });
  });

  it.each(['/abs', '../up', 'a/../../up', 'a//b', './a', 'a/.', '', 'a/', '..'])(
    'refuses the path %j before it is sent',
    async (path) => {
      const { files, at } = await filesInFolder();
      await expect(files.putTree(at(), [file(path, 'x')])).rejects.toThrow(RangeError);
      expect(await readdir(at())).toEqual([]);
    },
  );

  it('is never put through a link, and replaces one that has the name of a file', async () => {
    const { files, at } = await filesInFolder();
    await mkdir(at('outside'));
    await mkdir(at('root'));
    await writeFile(at('outside', 'target'), 'untouched');
    await symlink(at('outside'), at('root', 'dir'));
    await symlink(at('outside', 'target'), at('root', 'file'));
    const put = (...entries: TreeSource[]): Promise<number> => files.putTree(at('root'), entries);
    const loop = { code: 'file_invalid', details: { errno: 40 } };
    await expect(put({ kind: 'directory', path: 'dir' })).rejects.toMatchObject(loop);
    await expect(put(file('dir/planted', 'x'))).rejects.toMatchObject({
      ...loop,
      details: { errno: 40, entry: 'dir/planted' },
    });
    await expect(put({ kind: 'link', path: 'dir/planted', target: 'x' })).rejects.toMatchObject(loop);
    await expect(
      put({ kind: 'link', path: 'planted', target: at('outside') }, file('planted/x', 'x')),
    ).rejects.toMatchObject(loop);
    expect(await put(file('file', 'new'))).toBe(1);
    expect((await lstat(at('root', 'file'))).isFile()).toBe(true);
    expect(await readFile(at('outside', 'target'), 'utf8')).toBe('untouched');
    expect(await readdir(at('outside'))).toEqual(['target']);
    // The positive control: the same through a real directory.
    expect(await put({ kind: 'directory', path: 'real' }, file('real/planted', 'x'))).toBe(2);
  });

  it('notices a directory that becomes a link in the middle', async () => {
    const { files, at } = await filesInFolder();
    await mkdir(at('outside'));
    const source = async function* (root: string, swap: boolean): AsyncGenerator<TreeSource> {
      yield { kind: 'directory', path: 'a' };
      yield { kind: 'directory', path: 'b' };
      // Large enough to be on its way before the swap.
      yield file('b/fill', Buffer.alloc(100_000));
      // In a folder that was empty: with `b` there, `a` was made and is not made again.
      await expect.poll(async () => await readdir(at(root))).toContain('b');
      if (swap) {
        await rename(at(root, 'a'), at('moved'));
        await symlink(at('outside'), at(root, 'a'));
      }
      yield file('a/planted', 'x');
    };
    await mkdir(at('quiet'));
    expect(await files.putTree(at('quiet'), source('quiet', false))).toBe(4);
    await mkdir(at('swapped'));
    await expect(files.putTree(at('swapped'), source('swapped', true))).rejects.toMatchObject({
      details: { errno: 40 },
    });
    expect(await readdir(at('outside'))).toEqual([]);
  });

  it('is refused where a directory is in the way of a file, or its parent is missing', async () => {
    const { files, at } = await filesInFolder();
    await mkdir(at('dir'));
    await writeFile(at('file'), '');
    await expect(files.putTree(at(), [file('dir', 'x')])).rejects.toMatchObject({ details: { errno: 21 } });
    await expect(files.putTree(at(), [file('none/x', 'x')])).rejects.toMatchObject({
      code: 'file_not_found',
    });
    await expect(files.putTree(at(), [{ kind: 'directory', path: 'file' }])).rejects.toMatchObject({
      details: { errno: 20 },
    });
    await expect(files.putTree(at('file'), [])).rejects.toMatchObject({ details: { errno: 20 } });
    await expect(gather(files.getTree(at('file')))).rejects.toMatchObject({ details: { errno: 20 } });
    await expect(gather(files.getTree(at('none')))).rejects.toMatchObject({ code: 'file_not_found' });
    expect(await files.putTree(at(), [])).toBe(0);
  });

  it('whose source lies about a size is given up', async () => {
    const { files, at } = await filesInFolder();
    const chunks = async function* (): AsyncGenerator<Buffer> {
      yield Buffer.from('short');
    };
    const entry: TreeSource = { kind: 'file', path: 'x', body: { sizeBytes: 100, chunks: chunks() } };
    await expect(files.putTree(at(), [entry])).rejects.toThrow('changed its size');
  });

  it('can be cancelled both ways', async () => {
    const { files, at } = await filesInFolder();
    const stop = new AbortController();
    const endless = async function* (): AsyncGenerator<TreeSource> {
      for (let index = 0; ; index++) {
        if (index === 3000) stop.abort();
        yield file(`f${index}`, randomBytes(100));
      }
    };
    await expect(files.putTree(at(), endless(), { signal: stop.signal })).rejects.toMatchObject({
      code: 'cancelled',
    });
    const again = new AbortController();
    const reading = async (): Promise<void> => {
      for await (const _ of files.getTree(at(), { signal: again.signal })) again.abort();
    };
    await expect(reading()).rejects.toMatchObject({ code: 'cancelled' });
  });
});
