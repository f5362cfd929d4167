import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Tunnel } from '../../src/porter/tunnel.ts';
import { connectPorter, runIn, startPorter } from '../support/porter-child.ts';
import { asRoot, when } from '../support/selection.ts';
import { ending, readAll, serve, temporaryFolder } from '../support/sockets.ts';

const sha256 = (data: Buffer): string => createHash('sha256').update(data).digest('hex');
const inside = (port: number) => ({ host: '127.0.0.1', port });
const megabyte = 2 ** 20;

/** Writes with back-pressure, then ends. */
async function send(tunnel: Tunnel, data: Buffer): Promise<void> {
  for (let offset = 0; offset < data.length; offset += megabyte) {
    if (!tunnel.write(data.subarray(offset, offset + megabyte))) await once(tunnel, 'drain');
  }
  tunnel.end();
}

describe('a tunnel inward', () => {
  it('carries 50 MB each way at once, unchanged', async () => {
    const porter = await connectPorter();
    const port = await serve((socket) => socket.pipe(socket));
    const data = randomBytes(50 * megabyte);
    const tunnel = await porter.connect(inside(port));
    const [back] = await Promise.all([readAll(tunnel), send(tunnel, data)]);
    expect(sha256(back)).toBe(sha256(data));
  });

  it('is one of 200 at once, each with its own bytes', async () => {
    const porter = await connectPorter();
    const port = await serve((socket) => socket.pipe(socket));
    const tunnels = await Promise.all(Array.from({ length: 200 }, () => porter.connect(inside(port))));
    const answers = tunnels.map((tunnel, index) => {
      tunnel.end(`number ${index} `.repeat(1000));
      return readAll(tunnel);
    });
    for (const [index, answer] of (await Promise.all(answers)).entries()) {
      expect(answer.toString()).toBe(`number ${index} `.repeat(1000));
    }
  });

  // Only root may look at the descriptors of an undumpable process.
  when(asRoot).it('is opened and closed a thousand times with nothing left over', async () => {
    const started = startPorter();
    const porter = await connectPorter(started);
    const descriptors = (): number => readdirSync(`/proc/${started.child.pid}/fd`).length;
    const before = descriptors();
    const port = await serve((socket) => socket.pipe(socket));
    for (let round = 0; round < 30; round++) {
      const some = Array.from({ length: 50 }, async () => {
        const tunnel = await porter.connect(inside(port));
        tunnel.end('x');
        expect((await readAll(tunnel)).toString()).toBe('x');
      });
      await Promise.all(some);
    }
    await expect.poll(descriptors).toBe(before);
  });

  it('reaches a Unix socket', async () => {
    const porter = await connectPorter();
    const path = join(await temporaryFolder(), 'socket');
    await serve((socket) => socket.pipe(socket), path);
    const tunnel = await porter.connect({ path });
    tunnel.end('by path');
    expect((await readAll(tunnel)).toString()).toBe('by path');
  });

  it('reaches localhost', async () => {
    const porter = await connectPorter();
    const port = await serve((socket) => socket.end('here'));
    expect((await readAll(await porter.connect({ host: 'localhost', port }))).toString()).toBe('here');
  });

  it.each([
    ['nobody listens', { host: '127.0.0.1', port: 1 }, 111],
    ['nobody listens at localhost', { host: 'localhost', port: 1 }, 111],
    ['the path is not there', { path: '/nowhere/socket' }, 2],
    ['the path is too long', { path: `/${'x'.repeat(200)}` }, 36],
    ['the address is a name', { host: 'example.com', port: 80 }, 22],
  ])('says at once why it failed when %s', async (_name, target, errno) => {
    const porter = await connectPorter();
    const from = performance.now();
    await expect(porter.connect(target)).rejects.toMatchObject({ code: 'tunnel_failed', details: { errno } });
    // One that nobody answers is given up after 10 s.
    expect(performance.now() - from).toBeLessThan(9_000);
  });

  it('is not begun when its caller has aborted', async () => {
    const porter = await connectPorter();
    await expect(
      porter.connect({ host: '127.0.0.1', port: 1 }, { signal: AbortSignal.abort() }),
    ).rejects.toMatchObject({ code: 'cancelled' });
    await porter.ping();
  });

  it('goes on reading after it ended its own side', async () => {
    const porter = await connectPorter();
    const port = await serve((socket) => {
      void readAll(socket).then((question) => socket.end(`got ${question}`));
    });
    const tunnel = await porter.connect(inside(port));
    tunnel.end('question');
    expect((await readAll(tunnel)).toString()).toBe('got question');
  });

  it('goes on writing after the other side ended', async () => {
    const porter = await connectPorter();
    let received: Promise<Buffer> | undefined;
    const port = await serve((socket) => {
      socket.end('first word');
      received = readAll(socket);
    });
    const tunnel = await porter.connect(inside(port));
    expect((await readAll(tunnel)).toString()).toBe('first word');
    tunnel.end('last word');
    await once(tunnel, 'close');
    expect((await received)?.toString()).toBe('last word');
  });

  it('tells a reset from a close', async () => {
    const porter = await connectPorter();
    const port = await serve((socket) => {
      socket.once('data', (word) => (word.toString() === 'reset' ? socket.resetAndDestroy() : socket.end()));
    });
    const closed = await porter.connect(inside(port));
    closed.write('close');
    expect(await ending(closed)).toBe('end');
    const reset = await porter.connect(inside(port));
    reset.write('reset');
    const [error] = await once(reset.resume(), 'error');
    expect(error).toMatchObject({ code: 'tunnel_reset', details: { errno: 104 } });
    await porter.ping();
  });

  it('passes on a reset of its own as a reset', async () => {
    const porter = await connectPorter();
    const ends: Array<Promise<string>> = [];
    const port = await serve((socket) => ends.push(ending(socket)));
    const reset = await porter.connect(inside(port));
    reset.destroy();
    const closed = await porter.connect(inside(port));
    closed.end();
    await expect.poll(() => ends.length).toBe(2);
    expect(await Promise.all(ends)).toEqual(['ECONNRESET', 'end']);
  });

  it('may be dropped in the middle of a flood without harm to the connection', async () => {
    const porter = await connectPorter();
    const port = await serve((socket) => {
      const flood = (): void => {
        while (socket.writable && socket.write(Buffer.alloc(65536)));
      };
      socket.on('drain', flood);
      flood();
    });
    for (let round = 0; round < 50; round++) {
      const tunnel = await porter.connect(inside(port));
      await once(tunnel, 'data');
      if (round % 2 === 0) tunnel.end();
      tunnel.destroy();
    }
    expect((await runIn(porter, ['echo', 'fine'])).stdout).toBe('fine\n');
  });

  it('that nobody reads holds its window and no more, and holds up nobody', async () => {
    const porter = await connectPorter();
    let taken = 0;
    const port = await serve((socket) => {
      const flood = (): void => {
        while (socket.write(Buffer.alloc(65536), () => (taken += 65536)) && socket.writable);
      };
      socket.on('drain', flood);
      flood();
    });
    const echo = await serve((socket) => socket.pipe(socket));
    const unread = await Promise.all(Array.from({ length: 8 }, () => porter.connect(inside(port))));
    for (const tunnel of unread) tunnel.once('readable', () => {});
    const data = randomBytes(5 * megabyte);
    const tunnel = await porter.connect(inside(echo));
    const [back] = await Promise.all([readAll(tunnel), send(tunnel, data)]);
    expect(sha256(back)).toBe(sha256(data));
    expect((await runIn(porter, ['head', '-c', '5000000', '/dev/zero'])).stdout.length).toBe(5_000_000);
    for (const one of unread) expect(one.readableLength).toBeLessThan(300_000);
    // The kernel's buffers take some; the rest waits at its source.
    expect(taken).toBeLessThan(8 * 8 * megabyte);
    for (const one of unread) one.destroy();
    await porter.ping();
  });

  it('whose peer does not read holds up its writer, and nobody else', async () => {
    const porter = await connectPorter();
    const port = await serve((socket) => socket.pause());
    const echo = await serve((socket) => socket.pipe(socket));
    const stuck = await porter.connect(inside(port));
    // More than the kernel buffers between the two.
    stuck.write(Buffer.alloc(32 * megabyte));
    const other = await porter.connect(inside(echo));
    other.end('free');
    expect((await readAll(other)).toString()).toBe('free');
    expect((await runIn(porter, ['echo', 'free'])).stdout).toBe('free\n');
    expect(stuck.writableNeedDrain).toBe(true);
  });
});
