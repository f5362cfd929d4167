import { mkdirSync, rmdirSync } from 'node:fs';
import { appendFile, chmod, mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import type { WatchEvent } from '../../src/porter/files.ts';
import { type FilesInFolder, filesInFolder } from '../support/porter-files.ts';

interface Watching extends FilesInFolder {
  /** Reads on until all of these were told, in any order; returns everything that was told until then. */
  readonly until: (...wanted: readonly string[]) => Promise<readonly string[]>;
  readonly events: AsyncGenerator<WatchEvent>;
}

async function watching(recursive: boolean, below = ''): Promise<Watching> {
  const setting = await filesInFolder();
  await mkdir(setting.at(below), { recursive: true });
  const events = setting.files.watch(setting.at(below), { recursive });
  expect((await events.next()).value).toMatchObject({ kind: 'ready', path: Buffer.alloc(0) });
  const until = async (...wanted: readonly string[]): Promise<readonly string[]> => {
    const told: string[] = [];
    while (!wanted.every((line) => told.includes(line))) {
      const { value, done } = await events.next();
      if (done === true) throw new Error(`the watch ended; told: ${told.join(', ')}`);
      told.push(`${value.kind} ${value.path.toString()}`);
    }
    return told;
  };
  return { ...setting, events, until };
}

describe('a watch', () => {
  it('tells what is created, changed, removed and moved', async () => {
    const { at, until, events } = await watching(false);
    await writeFile(at('file'), 'x');
    await until('created file', 'changed file');
    await chmod(at('file'), 0o600);
    await until('changed file');
    await rename(at('file'), at('renamed'));
    await until('removed file', 'moved renamed');
    await rm(at('renamed'));
    await until('removed renamed');
    await events.return(undefined);
  });

  it('tells the same change again when it happens again later', async () => {
    const { at, until } = await watching(false);
    await writeFile(at('file'), 'x');
    await until('created file', 'changed file');
    for (let turn = 0; turn < 3; turn++) {
      await appendFile(at('file'), 'x');
      await until('changed file');
    }
  });

  it('does not look below unless it is told to', async () => {
    const { at, until } = await watching(false);
    await mkdir(at('dir'));
    await until('created dir');
    await writeFile(at('dir', 'file'), 'x');
    await writeFile(at('last'), 'x');
    expect(await until('created last')).not.toContain('created dir/file');
  });

  it('follows directories that appear, with what is in them already', async () => {
    const { at, until } = await watching(true);
    await mkdir(at('a', 'b', 'c'), { recursive: true });
    await writeFile(at('a', 'b', 'c', 'file'), 'x');
    await until('created a', 'created a/b', 'created a/b/c', 'created a/b/c/file');
    await appendFile(at('a', 'b', 'c', 'file'), 'y');
    await until('changed a/b/c/file');
    await rm(at('a'), { recursive: true });
    await until('removed a/b/c/file', 'removed a/b/c', 'removed a/b', 'removed a');
  });

  it('follows a directory that is moved within, and forgets one that is moved away', async () => {
    const { at, until } = await watching(true, 'root');
    await mkdir(at('root', 'one', 'deep'), { recursive: true });
    await until('created one', 'created one/deep');
    await rename(at('root', 'one'), at('root', 'two'));
    await until('removed one', 'moved two');
    await writeFile(at('root', 'two', 'deep', 'file'), 'x');
    await until('created two/deep/file');
    await rename(at('root', 'two'), at('away'));
    await until('removed two');
    await writeFile(at('away', 'deep', 'unseen'), 'x');
    await rename(at('away'), at('root', 'back'));
    const told = await until('moved back');
    expect(told.filter((line) => line.includes('unseen'))).toEqual([]);
    await writeFile(at('root', 'back', 'deep', 'seen'), 'x');
    await until('created back/deep/seen');
  });

  it('does not follow links', async () => {
    const { at, until } = await watching(true, 'root');
    await mkdir(at('outside'));
    await symlink(at('outside'), at('root', 'link'));
    await until('created link');
    await writeFile(at('outside', 'file'), 'x');
    await writeFile(at('root', 'last'), 'x');
    expect(await until('created last')).not.toContain('created link/file');
  });

  it('of a single file works, and ends when what is watched is removed', async () => {
    const { files, at } = await filesInFolder();
    await writeFile(at('file'), 'x');
    const events = files.watch(at('file'));
    expect((await events.next()).value).toMatchObject({ kind: 'ready' });
    await appendFile(at('file'), 'y');
    expect((await events.next()).value).toMatchObject({ kind: 'changed', path: Buffer.alloc(0) });
    await rm(at('file'));
    const kinds: string[] = [];
    for await (const { kind } of events) kinds.push(kind);
    expect(kinds.at(-1)).toBe('removed');
  });

  it('tells equal changes in a row once, and a flood in one piece', async () => {
    const { at, until } = await watching(true);
    for (let turn = 0; turn < 500; turn++) await appendFile(at('file'), 'x');
    await writeFile(at('last'), '');
    const told = await until('created last');
    expect(told.length).toBeLessThan(400);
  });

  it('says when it lost count', async () => {
    const { at, events } = await watching(true);
    // Nobody reads: windows and pipe are full first, then the kernel's own queue.
    for (let turn = 0; turn < 12_000; turn++) {
      const path = at(`${turn}-`.padEnd(200, 'x'));
      mkdirSync(path);
      rmdirSync(path);
    }
    for (;;) {
      const { value, done } = await events.next();
      expect(done).not.toBe(true);
      if (value?.kind === 'overflow') break;
    }
    await writeFile(at('after'), '');
    for (;;) {
      const { value } = await events.next();
      if (value?.path.toString() === 'after') break;
    }
  });

  it('of what is not there is refused', async () => {
    const { files, at } = await filesInFolder();
    await expect(files.watch(at('none')).next()).rejects.toMatchObject({ code: 'file_not_found' });
  });

  it('ends with its signal', async () => {
    const { files, at } = await filesInFolder();
    const stop = new AbortController();
    const events = files.watch(at(), { signal: stop.signal });
    await events.next();
    const next = events.next();
    stop.abort();
    await expect(next).rejects.toMatchObject({ code: 'cancelled' });
  });
});
