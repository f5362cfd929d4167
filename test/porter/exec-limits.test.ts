/** Memory and other limits, terminals, and odd requests. */

import { mkdtempSync, readdirSync, readFileSync, rmdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { ExecRequest } from '../../src/porter/exec.ts';
import { streamWindow } from '../../src/porter/greeting.ts';
import type { OutputSink } from '../../src/porter/output-sink.ts';
import type { Porter } from '../../src/porter/porter.ts';
import { tellFigures } from '../support/figures.ts';
import {
  type Captured,
  capture,
  collect,
  connectPorter,
  descendants,
  plainEnv,
  runIn,
  startPorter,
  Transcript,
} from '../support/porter-child.ts';
import { full } from '../support/requires.ts';
import { asRoot, when } from '../support/selection.ts';

const mebibyte = 2 ** 20;
const hog = (bytes: number): string => `x = b"x" * ${bytes}; import time; time.sleep(1000)`;

describe('[G5] a memory limit', () => {
  it('holds for the sum of a whole tree', async () => {
    const child = startPorter();
    const porter = await connectPorter(child);
    const script = `for i in 1 2 3 4; do setsid python3 -c '${hog(60 * mebibyte)}' & done; wait`;
    const result = await runIn(porter, ['bash', '-c', script], { memoryLimitBytes: 150 * mebibyte });
    expect(result).toMatchObject({ memoryLimitExceeded: true, signal: 9, timedOut: false, killed: false });
    expect(descendants(child.child.pid ?? 0)).toEqual([]);
  });

  it('lets alone what stays below it', async () => {
    const porter = await connectPorter();
    const script = `x = b"x" * ${60 * mebibyte}; import time; time.sleep(0.4)`;
    const result = await runIn(porter, ['python3', '-c', script], { memoryLimitBytes: 400 * mebibyte });
    expect(result).toMatchObject({ memoryLimitExceeded: false, exitCode: 0 });
  });
});

describe('a resource limit', () => {
  it.each([
    ['open files', { openFiles: 77 }, 'n', '77'],
    ['the data segment', { dataBytes: 512 * mebibyte }, 'd', String(512 * 1024)],
    ['the size of files', { fileBytes: mebibyte }, 'f', '1024'],
  ] as const)('for %s is in force', async (_name, limits, letter, expected) => {
    const porter = await connectPorter();
    const result = await runIn(porter, ['bash', '-c', `ulimit -S${letter}; ulimit -H${letter}`], { limits });
    expect(result.stdout).toBe(`${expected}\n${expected}\n`);
  });

  it('for core files is always 0', async () => {
    const porter = await connectPorter();
    expect((await runIn(porter, ['bash', '-c', 'ulimit -Hc'])).stdout).toBe('0\n');
  });

  it('raises the OOM score of a program above that of porter', async () => {
    const porter = await connectPorter();
    expect((await runIn(porter, ['cat', '/proc/self/oom_score_adj'])).stdout).toBe('500\n');
  });
});

interface Terminal {
  readonly exec: Captured['exec'];
  readonly screen: Transcript;
  readonly type: (text: string) => Promise<void>;
}

async function terminal(porter: Porter, script: string): Promise<Terminal> {
  const { exec, stdout } = capture(porter, {
    argv: ['bash', '--norc', '-c', script],
    env: { ...plainEnv, TERM: 'xterm' },
    cwd: '/',
    stdin: true,
    pty: { rows: 33, columns: 101 },
  });
  await exec.started;
  return { exec, screen: new Transcript(stdout), type: (text) => exec.write(Buffer.from(text)) };
}

describe('a terminal', () => {
  it('is there when asked for, with its size, and controls the program', async () => {
    const porter = await connectPorter();
    const { screen, exec } = await terminal(
      porter,
      'test -t 0 && test -t 1 && test -t 2 && stty size </dev/tty && echo yes',
    );
    expect((await exec.result).exitCode).toBe(0);
    expect(screen.text).toBe('33 101\r\nyes\r\n');
  });

  it('is not there when not asked for', async () => {
    const porter = await connectPorter();
    const script = 'test -t 0 || test -t 1 || test -t 2 || echo none; : </dev/tty';
    expect(await runIn(porter, ['bash', '-c', script])).toMatchObject({ stdout: 'none\n', exitCode: 1 });
  });

  it('can be resized, and the program is told by a signal', async () => {
    const porter = await connectPorter();
    const { screen, exec } = await terminal(
      porter,
      'trap "stty size; exit" WINCH; echo ready; while :; do sleep 0.01; done',
    );
    await screen.until('ready');
    exec.resize(50, 120);
    await screen.until('50 120');
    await exec.result;
  });

  it('carries Ctrl-C as a signal to the foreground', async () => {
    const porter = await connectPorter();
    const { screen, type, exec } = await terminal(
      porter,
      'trap "echo interrupted; exit 9" INT; echo ready; while :; do sleep 0.01; done',
    );
    await screen.until('ready');
    await type('\u0003');
    await screen.until('interrupted');
    expect((await exec.result).exitCode).toBe(9);
  });

  it.each([
    ['a line', 'one\n', 'one\r\none\r\n'],
    ['nothing', '', ''],
    ['the middle of a line', 'par', 'parpar'],
  ])('ends its input after %s', async (_name, input, expected) => {
    const porter = await connectPorter();
    const { exec, type, screen } = await terminal(porter, 'echo ready; exec cat');
    await screen.until('ready');
    if (input !== '') await type(input);
    exec.endStdin();
    expect((await exec.result).exitCode).toBe(0);
    expect(screen.text).toBe(`ready\r\n${expected}`);
  });

  it('is not hung up because a program closed its output before it ended', async () => {
    const porter = await connectPorter();
    for (let round = 0; round < 100; round++) {
      const { exec, screen } = await terminal(porter, 'echo ready; exec cat');
      await screen.until('ready');
      exec.endStdin();
      expect(await exec.result).toMatchObject({ exitCode: 0 });
      exec.forget();
    }
  });

  it('carries all that a full-screen program writes', async () => {
    const porter = await connectPorter();
    const script = 'for i in $(seq 2000); do printf "\\033[2J\\033[%d;%dH%05d\\033[7mx\\033[0m" 3 4 $i; done';
    const { exec, stdout } = capture(porter, {
      argv: ['bash', '-c', script],
      env: plainEnv,
      cwd: '/',
      pty: { rows: 24, columns: 80 },
    });
    const [text, result] = await Promise.all([collect(stdout), exec.result]);
    const expected = Array.from(
      { length: 2000 },
      (_, index) => `\u001b[2J\u001b[3;4H${String(index + 1).padStart(5, '0')}\u001b[7mx\u001b[0m`,
    ).join('');
    expect(text).toBe(expected);
    expect(result).toMatchObject({ exitCode: 0, outputIncomplete: false });
  });
});

describe('input', () => {
  it('can be ended while output goes on', async () => {
    const porter = await connectPorter();
    const result = await runIn(porter, ['bash', '-c', 'cat | wc -c; echo after'], {
      input: Buffer.alloc(300_000),
    });
    expect(result.stdout).toBe('300000\nafter\n');
  });

  it('of several writers at once arrives whole and in their order', async () => {
    const porter = await connectPorter();
    const { exec, stdout } = capture(porter, { argv: ['cat'], env: plainEnv, cwd: '/', stdin: true });
    for (const letter of 'abc') void exec.write(Buffer.alloc(100_000, letter));
    exec.endStdin();
    expect(await collect(stdout)).toBe('a'.repeat(100_000) + 'b'.repeat(100_000) + 'c'.repeat(100_000));
  });
});

describe('a request', () => {
  it('may carry 200 KB of arguments', async () => {
    const porter = await connectPorter();
    const words = Array.from({ length: 200 }, (_, index) => String(index % 10).repeat(1_000));
    const result = await runIn(porter, ['bash', '-c', 'printf %s "$@"', 'bash', ...words]);
    expect(result.stdout).toBe(words.join(''));
  });

  it('with one argument that is larger than the kernel takes says so', async () => {
    const porter = await connectPorter();
    const { exec } = capture(porter, { argv: ['true', 'x'.repeat(200_000)], env: plainEnv, cwd: '/' });
    await expect(exec.started).rejects.toMatchObject({ code: 'exec_start_failed', details: { errno: 7 } });
  });

  it.each<readonly [string, Partial<ExecRequest>]>([
    ['1 MB of environment', { env: { LARGE: 'x'.repeat(2 ** 20) } }],
    ['a NUL in an argument', { argv: ['echo', 'a\0b'] }],
    ['a NUL in bytes', { argv: ['echo', Buffer.from([97, 0, 98])] }],
    ['a NUL in the environment', { env: { A: '\0' } }],
    ['a NUL in the working directory', { cwd: '/\0' }],
  ])('with %s is refused before it is sent', async (_name, wrong) => {
    const porter = await connectPorter();
    expect(() => capture(porter, { argv: ['true'], env: {}, cwd: '/', ...wrong })).toThrow(
      expect.objectContaining({ code: 'exec_invalid' }),
    );
    expect((await runIn(porter, ['echo', 'on'])).stdout).toBe('on\n');
  });

  it('carries bytes that are not UTF-8 as they are', async () => {
    const porter = await connectPorter();
    const result = await runIn(porter, [
      'bash',
      '-c',
      'printf %s "$1" | od -An -tx1',
      'bash',
      Buffer.from([0xff, 0xfe, 0x80]),
    ]);
    expect(result.stdout.trim()).toBe('ff fe 80');
  });

  it('for a directory that was removed says so', async () => {
    const porter = await connectPorter();
    const folder = mkdtempSync(join(tmpdir(), 'sallyport-cwd-'));
    rmdirSync(folder);
    await expect(
      capture(porter, { argv: ['true'], env: plainEnv, cwd: folder }).exec.started,
    ).rejects.toMatchObject({
      code: 'exec_start_failed',
      details: { errno: 2 },
    });
  });

  it('beyond 256 execs at once is refused, and those go on', async () => {
    const porter = await connectPorter();
    const all = Array.from({ length: 257 }, () =>
      capture(porter, { argv: ['cat'], env: plainEnv, cwd: '/', stdin: true }),
    );
    const outcomes = await Promise.allSettled(all.map(({ exec }) => exec.started));
    expect(outcomes.filter(({ status }) => status === 'rejected')).toMatchObject([
      { reason: { details: { errno: 11 } } },
    ]);
    for (const { exec } of all) exec.endStdin();
    const results = await Promise.allSettled(all.map(({ exec }) => exec.result));
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(256);
  });
});

describe('output', () => {
  it('that a process left behind never stops writing does not hold the end back', async () => {
    const child = startPorter();
    const porter = await connectPorter(child);
    const { exec, stdout } = capture(porter, {
      argv: ['bash', '-c', 'yes & sleep 0.1; exit 0'],
      env: plainEnv,
      cwd: '/',
    });
    stdout.discard();
    expect(await exec.result).toMatchObject({ exitCode: 0, outputIncomplete: true, leftBehind: 1 });
  });

  it('that was written just before the end is all there, however much it is', async () => {
    const porter = await connectPorter();
    for (let round = 0; round < 20; round++) {
      const result = await runIn(porter, ['bash', '-c', 'sleep 1000 & head -c 60000 /dev/zero; exit 0']);
      expect(result.stdout).toHaveLength(60_000);
    }
  });

  it('of gigabytes passes with bounded memory on both sides', async () => {
    const bytes = full ? 10 * 2 ** 30 : 256 * mebibyte;
    const child = startPorter();
    const porter = await connectPorter(child);
    let seen = 0;
    let most = 0;
    const sink: OutputSink = {
      write: async (_channel, _offset, data) => {
        seen += data.length;
        most = Math.max(most, process.memoryUsage().rss);
      },
      end: () => {},
    };
    const pid = child.child.pid ?? 0;
    const porterBefore = residentBytes(pid);
    const before = process.memoryUsage().rss;
    const from = performance.now();
    const exec = porter.exec(
      { argv: ['head', '-c', String(bytes), '/dev/zero'], env: plainEnv, cwd: '/' },
      sink,
    );
    expect(await exec.result).toMatchObject({ exitCode: 0, stdoutBytes: bytes });
    tellFigures('output', {
      bytes,
      seconds: (performance.now() - from) / 1000,
      hostBytesBefore: before,
      hostBytesMost: most,
      porterBytesBefore: porterBefore,
      porterBytesAfter: residentBytes(pid),
    });
    expect(seen).toBe(bytes);
    expect(most - before).toBeLessThan(200 * mebibyte);
    expect(residentBytes(pid)).toBeLessThan(4 * mebibyte);
  }, 600_000);

  it('passes beside a stream that nobody reads, which keeps its window and no more', async () => {
    const bytes = full ? 100_000_000 : 20_000_000;
    const child = startPorter();
    const porter = await connectPorter(child);
    const unread = capture(porter, { argv: ['cat', '/dev/zero'], env: plainEnv, cwd: '/' });
    await unread.exec.started;
    const from = performance.now();
    expect((await runIn(porter, ['head', '-c', String(bytes), '/dev/zero'])).stdout).toHaveLength(bytes);
    tellFigures('beside an unread stream', {
      bytes,
      seconds: (performance.now() - from) / 1000,
      porterBytesAfter: residentBytes(child.child.pid ?? 0),
    });
    const [known] = await porter.list();
    expect(known?.stdout.first).toBe(0);
    expect(known?.stdout.next).toBeLessThanOrEqual(streamWindow);
    expect(residentBytes(child.child.pid ?? 0)).toBeLessThan(4 * mebibyte);
    unread.exec.kill(0);
    unread.stdout.discard();
    expect(await unread.exec.result).toMatchObject({ killed: true });
  });

  it('that cannot be stored ends its exec with an error, and holds up no other', async () => {
    const porter = await connectPorter();
    const sink: OutputSink = { write: () => Promise.reject(new Error('disk full')), end: () => {} };
    const exec = porter.exec({ argv: ['cat', '/dev/zero'], env: plainEnv, cwd: '/' }, sink);
    await expect(exec.result).rejects.toMatchObject({ code: 'output_lost' });
    expect((await runIn(porter, ['head', '-c', '5000000', '/dev/zero'])).stdout).toHaveLength(5_000_000);
    while ((await porter.list()).length > 0);
  });

  it('is acknowledged in order, though its sink finishes out of order', async () => {
    const child = startPorter();
    const porter = await connectPorter(child);
    const waiting: Array<() => void> = [];
    const sink: OutputSink = {
      write: () => new Promise((resolve) => void waiting.push(resolve)),
      end: () => {},
    };
    const exec = porter.exec(
      { argv: ['bash', '-c', 'printf a; read x; printf b'], env: plainEnv, cwd: '/', stdin: true },
      sink,
    );
    while (waiting.length < 1) await porter.ping();
    await exec.write(Buffer.from('\n'));
    while (waiting.length < 2) await porter.ping();
    waiting[1]?.();
    await porter.ping();
    expect(await porter.list()).toMatchObject([{ stdout: { first: 0 } }]);
    waiting[0]?.();
    expect(await exec.result).toMatchObject({ exitCode: 0 });
  });
});

describe('porter after many execs', () => {
  // Only root may look at the descriptors of an undumpable process.
  when(asRoot).it(
    'has as many descriptors, children and as much memory as before',
    async () => {
      const count = full ? 100_000 : 2_000;
      const child = startPorter();
      const porter = await connectPorter(child);
      const pid = child.child.pid ?? 0;
      const some = (): Promise<unknown> =>
        Promise.all(Array.from({ length: 50 }, (_, index) => runIn(porter, ['/bin/echo', String(index)])));
      await some();
      const before = await settledUsage(porter, pid);
      const from = performance.now();
      for (let done = 0; done < count; done += 50) await some();
      const after = await settledUsage(porter, pid);
      tellFigures('execs', {
        count,
        seconds: (performance.now() - from) / 1000,
        porterBytesBefore: before.residentBytes,
        porterBytesAfter: after.residentBytes,
        descriptorsBefore: before.descriptors,
        descriptorsAfter: after.descriptors,
      });
      expect(after.descriptors).toBe(before.descriptors);
      expect(after.residentBytes - before.residentBytes).toBeLessThan(256 * 1024);
    },
    900_000,
  );
});

function residentBytes(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1]) * 4096;
}

/** Once every exec is gone, its supervisor included. */
async function settledUsage(
  porter: Porter,
  pid: number,
): Promise<{ readonly descriptors: number; readonly residentBytes: number }> {
  const children = `/proc/${pid}/task/${pid}/children`;
  while ((await porter.list()).length > 0 || readFileSync(children, 'utf8') !== '');
  return { descriptors: readdirSync(`/proc/${pid}/fd`).length, residentBytes: residentBytes(pid) };
}
