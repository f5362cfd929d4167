import { once } from 'node:events';
import net from 'node:net';
import { setTimeout as after } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { listen } from '../../../test/support/loopback-gate.ts';
import { Pauses } from './pauses.ts';

const never = new Promise<never>(() => {});

/** How long a pause after such chunks takes to be one, in ms. */
async function pauseAfter(pauses: Pauses, ...chunks: readonly number[]): Promise<number> {
  const from = performance.now();
  const isLong = pauses.isLong(never);
  for (const bytes of chunks) pauses.chunkEnded(bytes);
  expect(await isLong).toBe(true);
  return performance.now() - from;
}

describe('a pause of a sender', () => {
  it('[R7] is short after a small chunk, and long after a large one or after many small ones without a pause', async () => {
    const pauses = new Pauses();
    expect(await pauseAfter(pauses, 100)).toBeLessThan(900);
    expect(await pauseAfter(pauses, 4096)).toBeGreaterThan(900);
    expect(await pauseAfter(pauses, ...Array.from({ length: 9 }, () => 1000))).toBeGreaterThan(900);
    expect(await pauseAfter(pauses, 100)).toBeLessThan(900);
  });

  it('[R7] was one also where it was not waited for to its end: small chunks count again', async () => {
    const pauses = new Pauses();
    const isLong = pauses.isLong(after(50));
    pauses.chunkEnded(9000);
    expect(await isLong).toBe(false);
    expect(await pauseAfter(pauses, 100)).toBeLessThan(900);
  });

  it('[R7] is none where the bytes were there and this process was busy', async () => {
    const server = net.createServer();
    const accepted = once(server, 'connection');
    const reader = net.connect(await listen(server), '127.0.0.1');
    onTestFinished(() => void reader.destroy());
    const [writer] = (await accepted) as [net.Socket];
    const pauses = new Pauses();
    const isLong = pauses.isLong(once(reader, 'data'));
    pauses.chunkEnded(100);
    writer.write('more');
    for (const until = performance.now() + 60; performance.now() < until; );
    expect(await isLong).toBe(false);
  });
});
