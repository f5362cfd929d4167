/** One window for all: streams that nobody reads do not stop one that is read, and both sides count alike. */

import { writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Porter } from '../../src/porter/porter.ts';
import { type Captured, capture, connectPorter, plainEnv } from '../support/porter-child.ts';
import { filesInFolder } from '../support/porter-files.ts';

const megabyte = 1_000_000;

function flood(porter: Porter, bytes?: number): Captured {
  const argv = bytes === undefined ? (['cat'] as const) : (['head', '-c', String(bytes)] as const);
  return capture(porter, { argv: [...argv, '/dev/zero'], env: plainEnv, cwd: '/' });
}

async function countBytes(source: AsyncIterable<Buffer>): Promise<number> {
  let bytes = 0;
  for await (const chunk of source) bytes += chunk.length;
  return bytes;
}

/** Reads this much, and then no more, without giving up the rest. */
async function readAndStop(source: AsyncIterable<Buffer>, bytes: number): Promise<void> {
  const reader = source[Symbol.asyncIterator]();
  for (let taken = 0; taken < bytes; ) taken += ((await reader.next()).value as Buffer).length;
}

async function carries(porter: Porter, bytes: number): Promise<void> {
  const read = flood(porter, bytes);
  expect(await countBytes(read.stdout)).toBe(bytes);
  expect((await read.exec.result).exitCode).toBe(0);
}

describe('100 MB of output', () => {
  it('pass twelve programs whose output nobody ever read', { timeout: 60_000 }, async () => {
    const porter = await connectPorter();
    const unread = Array.from({ length: 12 }, () => flood(porter));
    await Promise.all(unread.map(({ exec }) => exec.started));
    await carries(porter, 100 * megabyte);
  });

  it('pass eight programs whose output was read and then no longer', { timeout: 60_000 }, async () => {
    const porter = await connectPorter();
    for (let index = 0; index < 8; index++) {
      const stopped = flood(porter);
      await readAndStop(stopped.stdout, 2 * megabyte);
    }
    await carries(porter, 100 * megabyte);
  });

  it('pass files and connections that nobody reads, and these pass programs', {
    timeout: 60_000,
  }, async () => {
    const { porter, at } = await filesInFolder();
    writeFileSync(at('big'), Buffer.alloc(20 * megabyte));
    const server = createServer((socket) => {
      socket.on('error', () => {});
      socket.end(Buffer.alloc(20 * megabyte));
    });
    server.listen(at('socket'));
    onTestFinished(() => void server.close());
    for (let index = 0; index < 4; index++) {
      flood(porter);
      await porter.connect({ path: at('socket') });
      await porter.files.read(at('big'))[Symbol.asyncIterator]().next();
    }
    await carries(porter, 100 * megabyte);
    expect(await countBytes(porter.files.read(at('big')))).toBe(20 * megabyte);
    expect(await countBytes(await porter.connect({ path: at('socket') }))).toBe(20 * megabyte);
  });
});

describe('the window of the connection', () => {
  it('is counted alike by both sides, whatever is cancelled, reset and ended under a full load', async () => {
    const { porter, at } = await filesInFolder();
    writeFileSync(at('big'), Buffer.alloc(20 * megabyte));
    const server = createServer((socket) => {
      socket.on('error', () => {});
      socket.end(Buffer.alloc(20 * megabyte));
    });
    server.listen(at('socket'));
    onTestFinished(() => void server.close());
    const loads = [flood(porter), flood(porter), flood(porter)];
    const taking = loads.map(({ stdout }) => countBytes(stdout));
    for (let round = 0; round < 60; round++) {
      const reader = porter.files.read(at('big'))[Symbol.asyncIterator]();
      const tunnel = await porter.connect({ path: at('socket') });
      await reader.next();
      for await (const _ of tunnel) break;
      await reader.return?.(undefined);
    }
    for (const { exec } of loads) exec.kill(0);
    await Promise.all(taking);
    await porter.ping();
  });
});
