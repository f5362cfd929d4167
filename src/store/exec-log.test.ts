import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { temporaryFolder } from '../../test/support/little-engine.ts';
import { bytesAt } from '../../test/support/log-bytes.ts';
import { type ExecLogFiles, type ExecLogLimits, execLogLimits, openExecLog } from './exec-log.ts';

const small: ExecLogLimits = { segmentBytes: 100, segmentRuns: 50, segments: 3, recentBytes: 0 };

async function openLog(limits = small, folder = join(temporaryFolder(), 'log')) {
  const log = await openExecLog(folder, { limits });
  onTestFinished(() => log.close());
  return { log, folder };
}

async function fill(log: ExecLogFiles, bytes: number): Promise<void> {
  const from = log.stored.stdout;
  await log.write('stdout', from, bytesAt('stdout', from, bytes));
}

/** Whether a write is done by the time that another log, which nobody holds, has done ten times as much. */
async function isDone(write: Promise<void>): Promise<boolean> {
  const { log } = await openLog();
  await fill(log, 10_000);
  const pending = Symbol('pending');
  return (await Promise.race([write, Promise.resolve(pending)])) !== pending;
}

describe('the log of an exec', () => {
  it('keeps output that a person can read as it came', async () => {
    const { log, folder } = await openLog(execLogLimits);
    await log.write('stdout', 0, Buffer.from('one\n'));
    await log.write('stderr', 0, Buffer.from('two\n'));
    await log.write('stdout', 4, Buffer.from('three\n'));
    expect(readFileSync(join(folder, '000000.out'), 'utf8')).toBe('one\ntwo\nthree\n');
    expect((await log.capture('stdout', 100)).data.toString()).toBe('one\nthree\n');
  });

  it('drops what it has already, and refuses what does not follow', async () => {
    const { log } = await openLog();
    await log.write('stdout', 0, Buffer.from('hello'));
    await log.write('stdout', 0, Buffer.from('hello'));
    await log.write('stdout', 3, Buffer.from('lo world'));
    await expect(log.write('stdout', 12, Buffer.from('!'))).rejects.toMatchObject({ code: 'output_lost' });
    await expect(log.write('stderr', 1, Buffer.from('!'))).rejects.toMatchObject({ code: 'output_lost' });
    // It is no failure of the log: what follows is taken.
    await log.write('stdout', 11, Buffer.from('!'));
    expect((await log.capture('output', 100)).data.toString()).toBe('hello world!');
    await log.end();
    await log.write('stdout', 0, Buffer.from('hello'));
    await expect(log.write('stdout', 12, Buffer.from('late'))).rejects.toMatchObject({ code: 'output_lost' });
  });

  it('lets a reader wait while the only segment that it lacks is dropped, and says what it missed', async () => {
    const { log } = await openLog({ ...small, segments: 2 });
    await fill(log, 200);
    const third = fill(log, 100);
    // By now the second segment is out of the list, and the third is not in it yet.
    const reader = log.read({ follow: true, from: { stdout: 100, stderr: 0 } });
    expect((await reader.next()).value).toEqual({ channel: 'stdout', offset: 100, droppedBytes: 100 });
    await third;
    expect((await reader.next()).value).toMatchObject({ channel: 'stdout', offset: 200 });
    await reader.return?.();
  });

  it('waits for a reader that holds, and goes on as far as that one reads', async () => {
    const { log } = await openLog();
    const reader = log.read({ follow: true, hold: true });
    await fill(log, 300);
    const fourth = fill(log, 100);
    expect(await isDone(fourth)).toBe(false);
    expect(log.stored.stdout).toBe(300);
    // The head is never dropped, so reading it frees nothing.
    expect((await reader.next()).value).toMatchObject({ offset: 0 });
    expect(await isDone(fourth)).toBe(false);
    expect((await reader.next()).value).toMatchObject({ offset: 100 });
    await fourth;
    await log.end();
    const rest: number[] = [];
    for await (const piece of reader) rest.push(piece.offset);
    expect(rest).toEqual([200, 300]);
  });

  it.each(['return', 'abort'] as const)('goes on when a reader that holds goes away by %s', async (way) => {
    const { log } = await openLog();
    const abort = new AbortController();
    const reader = log.read({ follow: true, hold: true, signal: abort.signal });
    await fill(log, 300);
    const more = fill(log, 1000);
    expect(await isDone(more)).toBe(false);
    if (way === 'abort') abort.abort();
    else await reader.return?.();
    await more;
    expect(await reader.next()).toEqual({ done: true, value: undefined });
    expect(log.stored.stdout).toBe(1300);
  });

  it('does not wait for a reader that does not hold, and tells it what it missed', async () => {
    const { log } = await openLog();
    const reader = log.read({ follow: true });
    await fill(log, 1000);
    await log.end();
    const pieces: string[] = [];
    for await (const piece of reader) {
      pieces.push('data' in piece ? `${piece.data.length} bytes` : `${piece.droppedBytes} dropped`);
    }
    expect(pieces).toEqual(['100 bytes', '700 dropped', '100 bytes', '100 bytes']);
  });

  it('ends a reader that waits when it is left, and when the exec ends', async () => {
    const { log } = await openLog();
    const left = log.read({ follow: true });
    const [waiting, ended] = [left.next(), log.read({ follow: true }).next()];
    await left.return?.();
    expect(await waiting).toEqual({ done: true, value: undefined });
    await log.end();
    expect(await ended).toEqual({ done: true, value: undefined });
  });

  it('hands out pieces of at most 64 KiB', async () => {
    const { log } = await openLog({ ...execLogLimits, recentBytes: 300_000 });
    await fill(log, 200_000);
    const sizes = async (): Promise<number[]> => {
      const found: number[] = [];
      for await (const piece of log.read()) found.push('data' in piece ? piece.data.length : -1);
      return found;
    };
    const fromMemory = await sizes();
    log.forgetRecent();
    expect(fromMemory).toEqual([65536, 65536, 65536, 3392]);
    expect(await sizes()).toEqual(fromMemory);
  });

  it('rejects all that wait when the folder cannot be written to, and says why', async () => {
    const folder = join(temporaryFolder(), 'log');
    const { log } = await openLog(small, folder);
    await fill(log, 100);
    rmSync(folder, { recursive: true });
    mkdirSync(join(folder, '000001.out'), { recursive: true });
    const writes = [50, 60].map((length, number) => {
      const offset = 100 + 50 * number;
      return log.write('stdout', offset, bytesAt('stdout', offset, length));
    });
    for (const write of writes) await expect(write).rejects.toMatchObject({ code: 'output_lost' });
    expect(log.stored.stdout).toBe(100);
  });

  describe.each([
    ['memory', 10_000],
    ['disk', 0],
  ])('captured from %s', (_where, recentBytes) => {
    it('never cuts a character in two', async () => {
      const { log } = await openLog({ ...execLogLimits, recentBytes });
      const printed = Buffer.from('aä€😀'.repeat(50));
      await log.write('stdout', 0, printed);
      for (let limit = 0; limit < 60; limit++) {
        const { data, truncated, totalBytes } = await log.capture('stdout', limit);
        const match = /^([^\n]*)\n… (\d+) bytes left out …\n([^\n]*)$/u.exec(data.toString());
        const [, head = '', left = '', tail = ''] = match ?? [];
        expect({ truncated, totalBytes }).toEqual({ truncated: true, totalBytes: 500 });
        expect(data.toString()).not.toContain('\ufffd');
        expect(printed.toString().startsWith(head)).toBe(true);
        expect(printed.toString().endsWith(tail)).toBe(true);
        const kept = Buffer.byteLength(head) + Buffer.byteLength(tail);
        expect(kept + Number(left)).toBe(500);
        expect(kept).toBeLessThanOrEqual(limit);
        expect(kept).toBeGreaterThanOrEqual(limit - 6);
      }
    });

    it('keeps bytes that are no text as they are', async () => {
      const { log } = await openLog({ ...execLogLimits, recentBytes });
      const printed = Buffer.from(Array.from({ length: 100 }, (_, place) => place * 2));
      await log.write('stderr', 0, printed);
      expect((await log.capture('stderr', 100)).data).toEqual(printed);
      expect((await log.capture('stdout', 100)).totalBytes).toBe(0);
    });
  });

  it('captures head and tail around what was dropped', async () => {
    const { log } = await openLog();
    await fill(log, 1000);
    const { data, truncated, totalBytes } = await log.capture('stdout', 5000);
    expect({ truncated, totalBytes }).toEqual({ truncated: true, totalBytes: 1000 });
    const marker = Buffer.from('\n… ');
    expect(data.indexOf(marker)).toBeGreaterThan(95);
    expect(data.indexOf(marker)).toBeLessThanOrEqual(100);
  });
});
