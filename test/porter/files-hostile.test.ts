/** A porter that lies about files: a typed error that ends the connection, and nothing else. */

import { describe, expect, it } from 'vitest';
import type { Files } from '../../src/porter/files.ts';
import { frameType } from '../../src/porter/frame.ts';
import { PayloadWriter } from '../../src/porter/payload.ts';
import { frame, lyingPorter } from '../support/lying-porter.ts';
import { gather } from '../support/porter-files.ts';

const done = (result: Buffer, errno = 0): Buffer =>
  frame(frameType.done, new PayloadWriter().u32(errno).bytes(result).end());
const data = (bytes: Buffer): Buffer => frame(frameType.data, bytes);
const record = (kind: number, name: Buffer): Buffer => new PayloadWriter().u32(kind).bytes(name).end();
const end = done(Buffer.alloc(4));

const stat = (files: Files): Promise<unknown> => files.stat('/x');
const list = (files: Files): Promise<unknown> => gather(files.list('/x'));
const read = (files: Files): Promise<unknown> => gather(files.read('/x', { length: 10 }));
const watch = (files: Files): Promise<unknown> => gather(files.watch('/x'));
const getTree = (files: Files): Promise<unknown> => gather(files.getTree('/x'));
const getRecords = (files: Files): Promise<unknown> => gather(files.getRecords('/x'));
const write = (files: Files): Promise<unknown> => files.write('/x', Buffer.from('x'));

const piece = Buffer.alloc(32_768);
const pieces = (stream: number, count: number): Buffer =>
  Buffer.concat(Array.from({ length: count }, () => frame(frameType.data, piece, stream)));

describe('a porter that sends data of files', () => {
  it('on three of them, each within its own window, but beyond that of the connection, is cut off', async () => {
    const { porter, say } = await lyingPorter();
    const readers = [1, 2, 3].map(() => porter.files.read('/x')[Symbol.asyncIterator]());
    const first = readers.map((reader) => reader.next());
    // Each operation is on its way when its first chunk arrives.
    await new Promise((resolve) => setImmediate(resolve));
    say(Buffer.concat([pieces(1, 7), pieces(2, 7)]));
    await Promise.all(first.slice(0, 2));
    say(pieces(3, 3));
    expect(await porter.closed).toMatchObject({ code: 'porter_protocol' });
  });

  it('beside an exec and beyond the window of the connection is cut off', async () => {
    const { porter, say } = await lyingPorter();
    const exec = porter.exec(
      { argv: ['x'], env: {}, cwd: '/' },
      { write: () => new Promise(() => {}), end: () => {} },
    );
    const reader = porter.files.read('/x')[Symbol.asyncIterator]();
    const next = reader.next();
    await new Promise((resolve) => setImmediate(resolve));
    const output = (index: number): Buffer =>
      frame(
        frameType.stdout,
        Buffer.concat([new PayloadWriter().u64(BigInt(index * piece.length)).end(), piece]),
        exec.stream,
      );
    say(Buffer.concat([0, 1, 2, 3, 4, 5, 6, 7].map(output)));
    say(pieces(2, 8));
    await next;
    await new Promise((resolve) => setImmediate(resolve));
    expect(await Promise.race([porter.closed, Promise.resolve('open')])).toBe('open');
    say(pieces(2, 1));
    expect(await porter.closed).toMatchObject({ code: 'porter_protocol' });
  });

  it('may send as much again on other files when it has said that these are done', async () => {
    const { porter, say } = await lyingPorter();
    for (let stream = 1; stream <= 5; stream++) {
      const reader = porter.files.read('/x')[Symbol.asyncIterator]();
      const next = reader.next();
      await new Promise((resolve) => setImmediate(resolve));
      say(pieces(stream, 7));
      await next;
      say(frame(frameType.done, new PayloadWriter().u32(5).bytes(Buffer.alloc(0)).end(), stream));
    }
    await new Promise((resolve) => setImmediate(resolve));
    expect(await Promise.race([porter.closed, Promise.resolve('open')])).toBe('open');
    porter.close();
  });
});

describe('a porter that lies about files', () => {
  it.each<readonly [string, (files: Files) => Promise<unknown>, readonly Buffer[]]>([
    ['an answer that is too short', stat, [frame(frameType.done, Buffer.alloc(3))]],
    ['an answer that is too long', stat, [frame(frameType.done, Buffer.alloc(60))]],
    ['a result beyond its bound', stat, [done(Buffer.alloc(10_000))]],
    ['a stat that is too short', stat, [done(Buffer.alloc(10))]],
    ['a stat of no kind', stat, [done(Buffer.alloc(44))]],
    ['data where there is none', stat, [data(Buffer.from('x'))]],
    ['empty data', read, [data(Buffer.alloc(0))]],
    ['more data than was asked for', read, [data(Buffer.alloc(11)), end]],
    ['more data than it has credit for', read, Array.from({ length: 9 }, () => data(Buffer.alloc(32_768)))],
    ["an exec's frame", read, [frame(frameType.started, Buffer.alloc(4))]],
    ['more room for input than it was sent', write, [frame(frameType.credit, Buffer.alloc(4, 0xff))]],
    ['a second answer', stat, [done(Buffer.alloc(10)), done(Buffer.alloc(10))]],
    ['a name with a slash', list, [data(record(1, Buffer.from('a/b'))), end]],
    ['an empty name', list, [data(record(1, Buffer.alloc(0))), end]],
    ['a name of 300 bytes', list, [data(record(1, Buffer.alloc(300, 'x')))]],
    ['a name of no kind', list, [data(record(9, Buffer.from('x'))), end]],
    ['a listing that breaks off', list, [data(record(1, Buffer.from('x')).subarray(0, 8)), end]],
    ['a listing without an end', list, [data(record(1, Buffer.from('x'))), done(Buffer.alloc(0))]],
    [
      'a page that is too long',
      list,
      [data(Buffer.concat(Array(2000).fill(record(1, Buffer.from('x'))))), end],
    ],
    ['a watch kind that is none', watch, [data(record(77, Buffer.from('x')))]],
    ['a path of 5,000 bytes', watch, [data(record(1, Buffer.alloc(5000, 'x')))]],
    ['a tree record of garbage', getTree, [data(Buffer.alloc(100, 0xff))]],
    ['a tree record of garbage, handed on', getRecords, [data(Buffer.alloc(100, 0xff))]],
    ['a tree that breaks off, handed on', getRecords, [data(Buffer.alloc(10)), end]],
    ['a tree that breaks off', getTree, [data(Buffer.alloc(10)), end]],
  ])('by %s loses the connection with a typed error', async (_name, ask, said) => {
    const { porter, say } = await lyingPorter();
    const asked = ask(porter.files);
    asked.catch(() => {});
    // The request goes out before the answer comes.
    await new Promise((resolve) => setImmediate(resolve));
    for (const bytes of said) say(bytes);
    await expect(asked).rejects.toMatchObject({ code: 'porter_protocol' });
    expect(await porter.closed).toMatchObject({ code: 'porter_protocol' });
    await expect(stat(porter.files)).rejects.toMatchObject({ code: 'porter_protocol' });
  });

  it('by an unknown errno is told as a failure of the file, and stays connected', async () => {
    const { porter, say } = await lyingPorter();
    const asked = stat(porter.files);
    asked.catch(() => {});
    await new Promise((resolve) => setImmediate(resolve));
    say(done(Buffer.alloc(0), 4_000_000_000));
    await expect(asked).rejects.toMatchObject({ code: 'file_failed', details: { errno: 4_000_000_000 } });
  }, 2000);
});
