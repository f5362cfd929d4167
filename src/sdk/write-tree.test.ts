import {
  chmod,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { TreeEntry } from '../porter/tree-stream.ts';
import { leavesTree, writeTree } from './write-tree.ts';

async function* empty(): AsyncGenerator<Buffer> {}

async function* only(body: Buffer): AsyncGenerator<Buffer> {
  yield body;
}

function entry(
  kind: TreeEntry['kind'],
  path: string,
  more: { target?: string; text?: string; mode?: number; mtimeNs?: bigint } = {},
): TreeEntry {
  const body = Buffer.from(more.text ?? '');
  return {
    kind,
    path: Buffer.from(path),
    mode: more.mode ?? 0o644,
    mtimeNs: more.mtimeNs ?? 0n,
    sizeBytes: body.length,
    target: Buffer.from(more.target ?? ''),
    body: kind === 'file' ? only(body) : empty(),
    pieces: kind === 'file' ? only(body) : empty(),
  };
}

async function* all(...entries: TreeEntry[]): AsyncGenerator<TreeEntry> {
  yield* entries;
}

async function folder(): Promise<{ readonly root: string; readonly outside: string }> {
  const base = await mkdtemp(join(tmpdir(), 'sally-tree-'));
  onTestFinished(() => rm(base, { recursive: true, force: true }));
  const [root, outside] = [join(base, 'root'), join(base, 'outside')];
  await mkdir(root);
  await mkdir(outside);
  return { root, outside };
}

describe('a tree from a sandbox', () => {
  it('is written with folders, files, modes and links that stay inside', async () => {
    const { root } = await folder();
    const result = await writeTree(
      root,
      all(
        entry('directory', 'a', { mode: 0o755 }),
        entry('file', 'a/run', { text: 'x', mode: 0o755 }),
        entry('link', 'a/link', { target: '../b' }),
        entry('file', 'b', { text: 'y' }),
      ),
    );
    expect(result).toEqual({ entries: 4, skipped: [] });
    expect(await readFile(join(root, 'a/link'), 'utf8')).toBe('y');
    expect((await lstat(join(root, 'a/run'))).mode & 0o7777).toBe(0o755);
  });

  it('cannot write through a link that it brings itself', async () => {
    const { root, outside } = await folder();
    const through = writeTree(
      root,
      all(entry('link', 'a', { target: 'b' }), entry('file', 'a/x', { text: 'bad' })),
    );
    await expect(through).rejects.toMatchObject({ code: 'tree_refused' });
    expect(await readdir(outside)).toEqual([]);
  });

  it('cannot write through a link that is there, to a folder or to a file', async () => {
    const { root, outside } = await folder();
    await writeFile(join(outside, 'kept'), 'good');
    await symlink(outside, join(root, 'door'));
    await symlink(join(outside, 'kept'), join(root, 'file'));
    await expect(writeTree(root, all(entry('file', 'door/x', { text: 'bad' })))).rejects.toMatchObject({
      code: 'tree_refused',
    });
    await expect(writeTree(root, all(entry('directory', 'door')))).rejects.toMatchObject({
      code: 'tree_refused',
    });
    await writeTree(root, all(entry('file', 'file', { text: 'new' })));
    expect(await readFile(join(outside, 'kept'), 'utf8')).toBe('good');
    expect(await readFile(join(root, 'file'), 'utf8')).toBe('new');
    expect(await readdir(outside)).toEqual(['kept']);
  });

  it('cannot bring a name twice', async () => {
    const { root } = await folder();
    const twice = writeTree(root, all(entry('file', 'a', { text: '1' }), entry('file', 'a', { text: '2' })));
    await expect(twice).rejects.toMatchObject({ code: 'tree_refused' });
  });

  it('[N5] has no more paths than are remembered, whatever their number', async () => {
    const { root } = await folder();
    const files = [entry('file', 'a'.repeat(100)), entry('file', 'b'.repeat(100)), entry('file', 'c')];
    const refused = writeTree(root, all(...files), { mostPathBytes: 200 });
    await expect(refused).rejects.toMatchObject({ code: 'tree_refused' });
    expect(await readdir(root)).toHaveLength(2);
    expect(await writeTree(root, all(...files), { mostPathBytes: 201 })).toMatchObject({ entries: 3 });
  });

  it('sets the times of files, and none from before 1970, which come as far in the future', async () => {
    const { root } = await folder();
    const before = BigInt.asUintN(64, -5_000_000_000n);
    const known = 1_000_000_000_123_000_000n;
    await writeTree(
      root,
      all(
        entry('file', 'known', { mtimeNs: known }),
        entry('file', 'before', { mtimeNs: before }),
        entry('link', 'link', { target: 'known', mtimeNs: before }),
        entry('directory', 'folder', { mtimeNs: before, mode: 0o755 }),
      ),
    );
    expect((await lstat(join(root, 'known'))).mtimeMs).toBe(1_000_000_000_123);
    for (const name of ['before', 'link', 'folder'])
      expect(Math.abs((await lstat(join(root, name))).mtimeMs - Date.now()), name).toBeLessThan(600_000);
  });

  it('[N5] gets no set-id and no sticky bit, whatever a porter sends and whatever was there', async () => {
    const { root } = await folder();
    const old = join(root, 'old');
    await writeFile(old, 'old');
    await chmod(old, 0o4755);
    expect((await lstat(old)).mode & 0o7777).toBe(0o4755);
    await writeTree(
      root,
      all(
        entry('directory', 'folder', { mode: 0o7755 }),
        entry('file', 'folder/small', { text: 'x', mode: 0o6755 }),
        entry('file', 'large', { text: 'x'.repeat(300_000), mode: 0o6755 }),
        entry('file', 'old', { text: 'new', mode: 0o4755 }),
      ),
    );
    for (const name of ['folder', 'folder/small', 'large', 'old'])
      expect((await lstat(join(root, name))).mode & 0o7777, name).toBe(0o755);
    expect(await readFile(old, 'utf8')).toBe('new');
  });

  it('leaves out links that lead elsewhere, and what is no file, and says so', async () => {
    const { root } = await folder();
    const { entries, skipped } = await writeTree(
      root,
      all(
        entry('link', 'absolute', { target: '/etc/passwd' }),
        entry('link', 'up', { target: '../../x' }),
        entry('other', 'pipe'),
        entry('link', 'fine', { target: 'absolute' }),
      ),
    );
    expect(entries).toBe(1);
    expect(skipped.map(({ path }) => path)).toEqual(['absolute', 'up', 'pipe']);
    expect(await readlink(join(root, 'fine'))).toBe('absolute');
    expect((await readdir(root)).sort()).toEqual(['fine']);
  });

  it.each([
    ['a', 'b', false],
    ['a/b', '../c', false],
    ['a/b', '../../c', true],
    ['a', '..', true],
    ['a', '/x', true],
    ['x', 'a/l/../..', true],
    ['a/b/c', '../../d/./e', false],
  ])('knows whether %s leads out of it with %s', (path, target, leaves) => {
    expect(leavesTree(path, target)).toBe(leaves);
  });
});
