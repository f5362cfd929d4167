import { execFileSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import {
  chmod,
  link,
  lstat,
  mkdir,
  readdir,
  readFile,
  readlink,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { createServer } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Files } from '../../src/porter/files.ts';
import { bytesOf, filesInFolder, gather } from '../support/porter-files.ts';
import { asRoot, when } from '../support/selection.ts';

const modeOf = async (path: string): Promise<number> => (await stat(path)).mode & 0o7777;

describe('stat and lstat', () => {
  it('tell what is there', async () => {
    const { files, at } = await filesInFolder();
    await writeFile(at('file'), 'hello');
    await chmod(at('file'), 0o640);
    await symlink('file', at('link'));
    const there = await stat(at('file'), { bigint: true });
    expect(await files.stat(at('file'))).toEqual({
      kind: 'file',
      mode: 0o640,
      sizeBytes: 5,
      mtimeNs: there.mtimeNs,
      uid: Number(there.uid),
      gid: Number(there.gid),
      inode: there.ino,
      links: 1,
    });
    expect(await files.stat(at('link'))).toMatchObject({ kind: 'file', sizeBytes: 5 });
    expect(await files.lstat(at('link'))).toMatchObject({ kind: 'link' });
    expect(await files.stat(at())).toMatchObject({ kind: 'directory' });
    expect(await files.stat('/dev/null')).toMatchObject({ kind: 'other' });
  });

  it('say what is wrong with a path, and go on', async () => {
    const { files, at } = await filesInFolder();
    await writeFile(at('file'), '');
    await expect(files.stat(at('nothing'))).rejects.toMatchObject({
      code: 'file_not_found',
      message: `stat ${at('nothing')}: no such file or directory`,
      details: { errno: 2, operation: 'stat', path: at('nothing') },
    });
    await expect(files.stat(at('file', 'below'))).rejects.toMatchObject({ details: { errno: 20 } });
    await expect(files.stat('relative')).rejects.toMatchObject({ code: 'file_invalid' });
    await expect(files.stat('')).rejects.toMatchObject({ code: 'file_invalid' });
    await expect(files.stat('/a\0b')).rejects.toMatchObject({ code: 'file_invalid' });
    await expect(files.stat(`/${'a'.repeat(4096)}`)).rejects.toMatchObject({ details: { errno: 36 } });
    // Longer than one frame.
    await expect(files.stat(`/${'a'.repeat(200_000)}`)).rejects.toMatchObject({ details: { errno: 36 } });
    expect(await files.stat('/')).toMatchObject({ kind: 'directory' });
  });
});

describe('list', () => {
  it('is sorted by bytes and goes over pages', async () => {
    const { files, at } = await filesInFolder();
    const names = Array.from({ length: 2500 }, (_, index) => `f${index}`);
    for (const name of names) await writeFile(at(name), '');
    const listed = await gather(files.list(at()));
    expect(listed.map(({ name }) => name.toString())).toEqual([...names].sort());
  });

  it('tells kinds, and names of any bytes', async () => {
    const { files, folder, at } = await filesInFolder();
    const names = [
      Buffer.from('new\nline'),
      Buffer.from([0xff, 0xfe, 0x80]),
      Buffer.from('-rf *'),
      Buffer.alloc(255, 'n'),
    ];
    const paths = names.map((name) => Buffer.concat([Buffer.from(`${folder}/`), name]));
    for (const path of paths) await files.write(path, Buffer.from('x'));
    await files.mkdir(at('dir'));
    await files.symlink('nowhere', at('link'));
    execFileSync('mkfifo', [at('fifo')]);
    const listed = await gather(files.list(folder));
    const kinds = new Map(listed.map(({ name, kind }) => [name.toString('hex'), kind]));
    for (const name of names) expect(kinds.get(name.toString('hex'))).toBe('file');
    expect(listed.find(({ name }) => name.equals(Buffer.from('dir')))?.kind).toBe('directory');
    expect(listed.find(({ name }) => name.equals(Buffer.from('link')))?.kind).toBe('link');
    expect(listed.find(({ name }) => name.equals(Buffer.from('fifo')))?.kind).toBe('other');
    for (const path of paths) expect(await files.readAll(path, 10)).toEqual(Buffer.from('x'));
    for (const path of paths) await files.remove(path);
    expect(await readdir(folder)).toEqual(['dir', 'fifo', 'link']);
  });

  it('of what is no directory is refused', async () => {
    const { files, at } = await filesInFolder();
    await writeFile(at('file'), '');
    execFileSync('mkfifo', [at('fifo')]);
    await expect(gather(files.list(at('file')))).rejects.toMatchObject({ details: { errno: 20 } });
    await expect(gather(files.list(at('fifo')))).rejects.toMatchObject({ details: { errno: 20 } });
    await expect(gather(files.list(at('none')))).rejects.toMatchObject({ code: 'file_not_found' });
    await mkdir(at('empty'));
    expect(await gather(files.list(at('empty')))).toEqual([]);
  });
});

describe('read', () => {
  it('takes offset and length', async () => {
    const { files, at } = await filesInFolder();
    await writeFile(at('file'), '0123456789');
    const read = async (offset?: number, length?: number): Promise<string> => {
      const options = {
        ...(offset === undefined ? {} : { offset }),
        ...(length === undefined ? {} : { length }),
      };
      return (await bytesOf(files.read(at('file'), options))).toString();
    };
    expect(await read()).toBe('0123456789');
    expect(await read(3)).toBe('3456789');
    expect(await read(3, 4)).toBe('3456');
    expect(await read(8, 100)).toBe('89');
    expect(await read(100)).toBe('');
    expect(await read(0, 0)).toBe('');
  });

  it('of everything at once has a limit', async () => {
    const { files, at } = await filesInFolder();
    await writeFile(at('file'), '0123456789');
    expect((await files.readAll(at('file'), 10)).toString()).toBe('0123456789');
    await expect(files.readAll(at('file'), 9)).rejects.toMatchObject({ code: 'file_invalid' });
    await expect(files.readAll('/dev/zero', 9)).rejects.toMatchObject({ code: 'file_invalid' });
    expect((await files.readAll('/proc/meminfo', 100_000)).toString()).toContain('MemTotal');
  });

  it('refuses what is no regular file within a second, and never blocks', async () => {
    const { files, at } = await filesInFolder();
    execFileSync('mkfifo', [at('fifo')]);
    await symlink('fifo', at('link'));
    await symlink('/dev/zero', at('zero'));
    await symlink('/proc/self/fd/3', at('own-status'));
    await symlink('/proc/self/fd/5', at('own-data'));
    await symlink('loop', at('loop'));
    const server = createServer().listen(at('socket'));
    onTestFinished(() => void server.close());
    await new Promise((resolve) => server.once('listening', resolve));
    const planted = ['fifo', 'link', 'zero', 'socket', 'own-status', 'own-data', 'loop'].map((name) =>
      at(name),
    );
    const from = performance.now();
    for (const path of [...planted, '/dev/zero', '/dev/tty', '/dev/ptmx', at()]) {
      await expect(bytesOf(files.read(path)), path).rejects.toMatchObject({ kind: 'invalid' });
      await expect(files.write(path, Buffer.from('x'), { how: 'truncate' }), path).rejects.toMatchObject({
        // A write has no descriptor 5.
        kind: path === at('own-data') ? 'not_found' : 'invalid',
      });
    }
    for (const path of [at('fifo'), at('socket'), at()]) {
      await expect(files.write(path, Buffer.from('x')), path).rejects.toMatchObject({ kind: 'invalid' });
    }
    expect(performance.now() - from).toBeLessThan(10_000);
    // The positive control: the same operations on a regular file work.
    await files.write(at('file'), Buffer.from('x'), { how: 'truncate' });
    expect((await files.readAll(at('file'), 10)).toString()).toBe('x');
  });
});

describe('write', () => {
  it('replaces the whole file at once, keeps its mode, and leaves no temporary file', async () => {
    const { files, at } = await filesInFolder();
    expect(await files.write(at('file'), Buffer.from('first'))).toMatchObject({ kind: 'file', sizeBytes: 5 });
    expect(await modeOf(at('file'))).toBe(0o644);
    await chmod(at('file'), 0o751);
    await link(at('file'), at('other-name'));
    await files.write(at('file'), Buffer.from('second'));
    expect(await modeOf(at('file'))).toBe(0o751);
    expect(await readFile(at('other-name'), 'utf8')).toBe('first');
    await files.write(at('file'), Buffer.from('third'), { mode: 0o600 });
    expect(await modeOf(at('file'))).toBe(0o600);
    expect(await readdir(at())).toEqual(['file', 'other-name']);
  });

  it('replaces a link, and does not write through it', async () => {
    const { files, at } = await filesInFolder();
    await writeFile(at('outside'), 'untouched');
    await symlink('outside', at('link'));
    await files.write(at('link'), Buffer.from('new'));
    expect(await readFile(at('outside'), 'utf8')).toBe('untouched');
    expect((await lstat(at('link'))).isFile()).toBe(true);
  });

  it('truncates, appends, refuses and requires as it is told', async () => {
    const { files, at } = await filesInFolder();
    await files.write(at('file'), Buffer.from('long content'), { how: 'new', mode: 0o600 });
    expect(await modeOf(at('file'))).toBe(0o600);
    await expect(files.write(at('file'), Buffer.from('x'), { how: 'new' })).rejects.toMatchObject({
      code: 'file_conflict',
      details: { errno: 17 },
    });
    await files.write(at('file'), Buffer.from('short'), { how: 'truncate' });
    await files.write(at('file'), Buffer.from('+more'), { how: 'append' });
    expect(await readFile(at('file'), 'utf8')).toBe('short+more');
    for (const how of ['replace', 'truncate', 'append'] as const) {
      await expect(files.write(at('none'), Buffer.from('x'), { how, mustExist: true })).rejects.toMatchObject(
        {
          code: 'file_not_found',
        },
      );
    }
    await expect(files.write(at('no', 'dir'), Buffer.from('x'))).rejects.toMatchObject({
      code: 'file_not_found',
    });
    expect(await readdir(at())).toEqual(['file']);
    await files.write(at('empty'), Buffer.alloc(0));
    expect((await stat(at('empty'))).size).toBe(0);
  });

  it('leaves the old file whole when the source fails, and no temporary file', async () => {
    const { files, at } = await filesInFolder();
    await writeFile(at('file'), 'old');
    const source = async function* (): AsyncGenerator<Buffer> {
      yield Buffer.from('half');
      throw new Error('the source broke');
    };
    await expect(files.write(at('file'), source())).rejects.toThrow('the source broke');
    await expect.poll(() => readdir(at())).toEqual(['file']);
    expect(await readFile(at('file'), 'utf8')).toBe('old');
  });

  it('leaves the old file whole when the host goes away in the middle', async () => {
    const { files, porter, at } = await filesInFolder();
    await writeFile(at('file'), 'old');
    const source = async function* (): AsyncGenerator<Buffer> {
      yield Buffer.from('half');
      await expect.poll(async () => (await readdir(at())).length).toBe(2);
      porter.close();
      yield Buffer.from('never');
    };
    await expect(files.write(at('file'), source())).rejects.toMatchObject({ code: 'porter_gone' });
    // Nothing is left to remove the temporary file when porter itself goes, so only the file matters here.
    expect(await readFile(at('file'), 'utf8')).toBe('old');
  });
});

describe('50 MB', () => {
  const bytes = 50 * 2 ** 20;
  const blocks = (seed: Buffer): Buffer[] => Array.from({ length: 50 }, () => seed);

  it('are written and read with bounded memory on both sides', async () => {
    const { files, child, at } = await filesInFolder();
    const seed = randomBytes(2 ** 20);
    const wanted = createHash('sha256');
    for (const block of blocks(seed)) wanted.update(block);
    const before = process.memoryUsage().rss;
    const source = async function* (): AsyncGenerator<Buffer> {
      yield* blocks(seed);
    };
    expect(await files.write(at('big'), source())).toMatchObject({ sizeBytes: bytes });
    const hash = createHash('sha256');
    let largest = 0;
    for await (const chunk of files.read(at('big'))) {
      hash.update(chunk);
      largest = Math.max(largest, process.memoryUsage.rss());
    }
    expect(hash.digest('hex')).toBe(wanted.digest('hex'));
    expect(largest - before).toBeLessThan(40 * 2 ** 20);
    expect(residentBytes(child.child.pid ?? 0)).toBeLessThan(2 ** 20);
  });

  it('that nobody takes do not hold up other operations', async () => {
    const { files, at } = await filesInFolder();
    await writeFile(at('big'), Buffer.alloc(5 * 2 ** 20));
    await writeFile(at('small'), 'small');
    const slow = Array.from({ length: 8 }, () => files.read(at('big')));
    for (const reader of slow) await reader.next();
    const from = performance.now();
    for (let turn = 0; turn < 20; turn++) {
      expect((await files.readAll(at('small'), 10)).toString()).toBe('small');
      expect(await files.readAll(at('big'), 2 ** 23)).toHaveLength(5 * 2 ** 20);
    }
    expect(performance.now() - from).toBeLessThan(10_000);
    let left = 0;
    const first = slow[0];
    if (first !== undefined) for await (const chunk of first) left += chunk.length;
    expect(left).toBeGreaterThan(4 * 2 ** 20);
    for (const reader of slow) await reader.return(undefined);
  });
});

describe('the other operations', () => {
  it('make directories', async () => {
    const { files, at } = await filesInFolder();
    await files.mkdir(at('a'), { mode: 0o700 });
    expect(await modeOf(at('a'))).toBe(0o700);
    await expect(files.mkdir(at('a'))).rejects.toMatchObject({ code: 'file_conflict' });
    await expect(files.mkdir(at('x', 'y'))).rejects.toMatchObject({ code: 'file_not_found' });
    await files.mkdir(at('x', 'y', 'z'), { parents: true });
    await files.mkdir(at('x', 'y', 'z'), { parents: true });
    expect((await stat(at('x', 'y', 'z'))).isDirectory()).toBe(true);
    await writeFile(at('file'), '');
    await expect(files.mkdir(at('file'), { parents: true })).rejects.toMatchObject({
      details: { errno: 17 },
    });
    await expect(files.mkdir(at('file', 'x'), { parents: true })).rejects.toMatchObject({
      details: { errno: 20 },
    });
  });

  it('remove files, and trees without following links', async () => {
    const { files, at } = await filesInFolder();
    await mkdir(at('outside', 'deep'), { recursive: true });
    await writeFile(at('outside', 'precious'), 'x');
    await mkdir(at('tree', 'a', 'b'), { recursive: true });
    for (let index = 0; index < 500; index++) await writeFile(at('tree', 'a', `f${index}`), '');
    await symlink(at('outside'), at('tree', 'a', 'link'));
    execFileSync('mkfifo', [at('tree', 'fifo')]);
    await expect(files.remove(at('tree'))).rejects.toMatchObject({
      code: 'file_conflict',
      details: { errno: 39 },
    });
    expect(await files.remove(at('tree'), { recursive: true })).toBe(505);
    expect(await readdir(at('outside'))).toEqual(['deep', 'precious']);
    await symlink(at('outside'), at('link'));
    expect(await files.remove(at('link'), { recursive: true })).toBe(1);
    expect(await readdir(at())).toEqual(['outside']);
    expect(await files.remove(at('outside', 'deep/'))).toBe(1);
    await expect(files.remove(at('gone'))).rejects.toMatchObject({ code: 'file_not_found' });
    await expect(files.remove('/', { recursive: true })).rejects.toMatchObject({ code: 'file_invalid' });
    await expect(files.remove(`${at('outside')}/..`, { recursive: true })).rejects.toMatchObject({
      code: 'file_invalid',
    });
  });

  it('go no deeper than 256 directories', async () => {
    const { files, at } = await filesInFolder();
    await files.mkdir(at(...Array.from({ length: 300 }, () => 'd')), { parents: true });
    await expect(files.remove(at('d'), { recursive: true })).rejects.toMatchObject({
      details: { errno: 36 },
    });
    await expect(gather(files.getTree(at()))).rejects.toMatchObject({ details: { errno: 36 } });
    await files.rename(at(...Array.from({ length: 200 }, () => 'd')), at('half'));
    expect(await files.remove(at('d'), { recursive: true })).toBe(199);
  });

  it('rename, link, read links and change modes', async () => {
    const { files, at } = await filesInFolder();
    await writeFile(at('a'), 'a');
    await writeFile(at('b'), 'b');
    await files.rename(at('a'), at('b'));
    expect(await readFile(at('b'), 'utf8')).toBe('a');
    await expect(files.rename(at('a'), at('b'))).rejects.toMatchObject({ code: 'file_not_found' });
    const target = Buffer.from([0x2e, 0x2f, 0xff, 0x0a]);
    await files.symlink(target, at('link'));
    expect(await readlink(at('link'), { encoding: 'buffer' })).toEqual(target);
    expect(await files.readlink(at('link'))).toEqual(target);
    await expect(files.symlink('x', at('link'))).rejects.toMatchObject({ code: 'file_conflict' });
    await expect(files.readlink(at('b'))).rejects.toMatchObject({ code: 'file_invalid' });
    await files.chmod(at('b'), 0o123);
    expect(await modeOf(at('b'))).toBe(0o123);
    await expect(files.chmod(at('b'), 0o77777)).rejects.toMatchObject({ code: 'file_invalid' });
    await expect(files.chmod(at('none'), 0o600)).rejects.toMatchObject({ code: 'file_not_found' });
  });
});

describe('many at once', () => {
  it('wait here beyond 32, and all are done', async () => {
    const { files, at } = await filesInFolder();
    const work = Array.from({ length: 200 }, (_, index) =>
      files.write(at(`f${index}`), Buffer.from(`content ${index}`)),
    );
    await Promise.all(work);
    expect(await readdir(at())).toHaveLength(200);
  });

  it('that are cancelled give their places to those who wait', async () => {
    const { files, at } = await filesInFolder();
    await writeFile(at('file'), 'x');
    const stop = new AbortController();
    // One listener for each watch is expected here; Node.js warns above 10.
    setMaxListeners(32, stop.signal);
    const watches = Array.from({ length: 32 }, () => files.watch(at(), { signal: stop.signal }));
    for (const watch of watches) expect((await watch.next()).value).toMatchObject({ kind: 'ready' });
    const impatient = new AbortController();
    const given = files.stat(at('file'), { signal: impatient.signal });
    const waiting = files.stat(at('file'));
    impatient.abort();
    await expect(given).rejects.toMatchObject({ code: 'cancelled' });
    stop.abort();
    expect(await waiting).toMatchObject({ kind: 'file' });
    for (const watch of watches) await expect(watch.next()).rejects.toMatchObject({ code: 'cancelled' });
  });

  // Only root may look at the descriptors of an undumpable process.
  when(asRoot).it('leave neither processes nor descriptors behind', async () => {
    const { files, child, at } = await filesInFolder();
    const pid = child.child.pid ?? 0;
    const descriptors = (): number => readdirSync(`/proc/${pid}/fd`).length;
    const children = (): string => readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8');
    // A worker that has answered waits for a moment for another operation.
    const nobodyIsLeft = (): Promise<void> => expect.poll(children, { timeout: 10_000 }).toBe('');
    await files.stat(at());
    await nobodyIsLeft();
    const before = descriptors();
    for (let turn = 0; turn < 20; turn++) await everyKind(files, at);
    await nobodyIsLeft();
    expect(descriptors()).toBe(before);
    expect(residentBytes(pid)).toBeLessThan(2 ** 20);
  });
});

/** Never 0, which would be the whole group that runs the tests. */
function onlyChild(pid: number): number {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
  expect(children).toMatch(/^[1-9]\d*$/);
  return Number(children);
}

describe('a cancelled operation', () => {
  it('ends at once, removes its temporary file, and its process is gone', async () => {
    const { files, child, at } = await filesInFolder();
    const pid = child.child.pid ?? 0;
    await writeFile(at('file'), 'old');
    const stop = new AbortController();
    const source = async function* (): AsyncGenerator<Buffer> {
      yield Buffer.alloc(300_000);
      await expect.poll(async () => (await readdir(at())).length).toBe(2);
      stop.abort();
      yield Buffer.alloc(300_000);
    };
    await expect(files.write(at('file'), source(), { signal: stop.signal })).rejects.toMatchObject({
      code: 'cancelled',
    });
    await expect.poll(() => readdir(at())).toEqual(['file']);
    expect(await readFile(at('file'), 'utf8')).toBe('old');
    await expect.poll(() => readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')).toBe('');
  });

  it('that is stopped from inside is killed all the same', async () => {
    const { files, child, at } = await filesInFolder();
    const pid = child.child.pid ?? 0;
    const children = (): string => readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
    const watch = files.watch(at());
    await watch.next();
    process.kill(onlyChild(pid), 'SIGSTOP');
    await watch.return(undefined);
    await expect.poll(children).toBe('');
  });

  it('that is killed from inside fails and nothing else does', async () => {
    const { files, child, at } = await filesInFolder();
    const pid = child.child.pid ?? 0;
    const watch = files.watch(at());
    await watch.next();
    process.kill(onlyChild(pid), 'SIGKILL');
    await expect(watch.next()).rejects.toMatchObject({ code: 'file_failed', details: { errno: 5 } });
    expect(await files.stat(at())).toMatchObject({ kind: 'directory' });
  });

  it('that was cancelled before it began does nothing', async () => {
    const { files, at } = await filesInFolder();
    const signal = AbortSignal.abort();
    await expect(files.mkdir(at('x'), { signal })).rejects.toMatchObject({ code: 'cancelled' });
    expect(await readdir(at())).toEqual([]);
  });
});

function residentBytes(pid: number): number {
  const kilobytes = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  return Number(kilobytes) * 1024;
}

async function everyKind(files: Files, at: (...parts: readonly string[]) => string): Promise<void> {
  await files.mkdir(at('d', 'e'), { parents: true });
  await files.write(at('d', 'f'), Buffer.alloc(100_000));
  await files.putTree(at('d'), [{ kind: 'file', path: 'g', body: Buffer.from('g') }]);
  expect(await gather(files.getTree(at('d')))).toHaveLength(3);
  for await (const chunk of files.read(at('d', 'f'))) if (chunk.length > 0) break;
  for await (const event of files.watch(at('d'), { recursive: true })) if (event.kind === 'ready') break;
  expect(await gather(files.list(at('d')))).toHaveLength(3);
  await expect(files.stat(at('none'))).rejects.toMatchObject({ code: 'file_not_found' });
  await files.remove(at('d'), { recursive: true });
}
