import { once } from 'node:events';
import { existsSync } from 'node:fs';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { deferred } from '../../src/lib/deferred.ts';
import type { Arrival, Listener, OnConnection } from '../../src/porter/listener.ts';
import type { Porter } from '../../src/porter/porter.ts';
import { type Captured, capture, connectPorter, runIn, startPorter } from '../support/porter-child.ts';
import { lastingPorter } from '../support/porter-relay.ts';
import { dial, ending, fate, heard, readAll, temporaryFolder } from '../support/sockets.ts';

const echo: OnConnection = (tunnel) => void tunnel.pipe(tunnel);

const at = (listener: Listener): { readonly host: string; readonly port: number } => ({
  host: listener.address,
  port: listener.port,
});

async function ask(socket: Socket, word: string): Promise<string> {
  const answer = heard(socket);
  socket.write(word);
  return await answer;
}

describe('a listener', () => {
  it('makes each connection a stream that says where it arrived and from where', async () => {
    const porter = await connectPorter();
    const path = join(await temporaryFolder(), 'socket');
    const arrivals: Arrival[] = [];
    const greet: OnConnection = (tunnel, arrival) => {
      arrivals.push(arrival);
      tunnel.end(arrival.listener.address);
    };
    const listeners = await Promise.all([
      porter.listen({ host: '127.0.0.1', port: 0 }, greet),
      porter.listen({ host: '127.66.0.7', port: 0 }, greet),
      porter.listen({ host: '::1', port: 0 }, greet),
      porter.listen({ path }, greet),
    ]);
    for (const listener of listeners) {
      const socket = await dial(listener.address === path ? { path } : at(listener));
      expect((await readAll(socket)).toString()).toBe(listener.address);
      const arrival = arrivals.pop();
      expect(arrival?.listener).toBe(listener);
      expect(arrival?.peerPort).toBe(socket.localPort ?? 0);
      // From 127.66.0.7 the kernel connects as 127.0.0.1 or as itself; whichever, porter says what the client is.
      expect(arrival?.peerAddress).toBe(socket.localAddress ?? '');
    }
  });

  it('serves 200 connections at once', async () => {
    const porter = await connectPorter();
    const listener = await porter.listen({ host: '127.0.0.1', port: 0 }, echo);
    const sockets = await Promise.all(Array.from({ length: 200 }, () => dial(at(listener))));
    const answers = await Promise.all(sockets.map((socket, index) => ask(socket, `number ${index}`)));
    expect(answers).toEqual(sockets.map((_, index) => `number ${index}`));
  });

  it('survives any number of connections whose ends and resets cross', async () => {
    const porter = await connectPorter();
    let broken: unknown;
    void porter.closed.then((error) => {
      broken = error;
    });
    const listener = await porter.listen({ host: '127.0.0.1', port: 0 }, (tunnel) => {
      tunnel.once('data', () => tunnel.end('over', () => tunnel.destroy()));
    });
    for (let round = 0; round < 10; round++) {
      const sockets = await Promise.all(Array.from({ length: 50 }, () => dial(at(listener))));
      await Promise.all(
        sockets.map(async (socket) => {
          socket.on('error', () => {});
          socket.end('hello');
          socket.resume();
          await once(socket, 'close');
        }),
      );
      await porter.ping();
    }
    expect(broken).toBeUndefined();
  });

  it('says why it cannot be', async () => {
    const porter = await connectPorter();
    const listener = await porter.listen({ host: '127.0.0.1', port: 0 }, echo);
    await expect(porter.listen(at(listener), echo)).rejects.toMatchObject({
      code: 'listen_failed',
      details: { errno: 98 },
    });
    await expect(porter.listen({ host: 'a.name', port: 0 }, echo)).rejects.toMatchObject({
      code: 'listen_failed',
      details: { errno: 22 },
    });
    const many = Array.from({ length: 63 }, () => porter.listen({ host: '127.0.0.1', port: 0 }, echo));
    await Promise.all(many);
    await expect(porter.listen({ host: '127.0.0.1', port: 0 }, echo)).rejects.toMatchObject({
      details: { errno: 11 },
    });
  });

  it('is removed while running, and its connections go on', async () => {
    const porter = await connectPorter();
    const path = join(await temporaryFolder(), 'socket');
    const tcp = await porter.listen({ host: '127.0.0.1', port: 0 }, echo);
    const unix = await porter.listen({ path }, echo);
    const [one, two] = [await dial(at(tcp)), await dial({ path })];
    expect([await ask(one, 'a'), await ask(two, 'b')]).toEqual(['a', 'b']);
    await Promise.all([tcp.close(), unix.close(), tcp.close()]);
    await expect(dial(at(tcp))).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    expect(existsSync(path)).toBe(false);
    expect([await ask(one, 'c'), await ask(two, 'd')]).toEqual(['c', 'd']);
    const again = await porter.listen(at(tcp), echo);
    expect(await ask(await dial(at(again)), 'e')).toBe('e');
    expect((await porter.listeners()).map(({ port }) => port)).toEqual([tcp.port]);
  });

  it('passes half-closes and resets both ways', async () => {
    const porter = await connectPorter();
    const listener = await porter.listen({ host: '127.0.0.1', port: 0 }, (tunnel) => {
      tunnel.once('data', (word: Buffer) => {
        if (word.toString() === 'reset') tunnel.destroy();
        else {
          tunnel.write('heard ');
          void readAll(tunnel).then((rest) => tunnel.end(`${word} and ${rest}`));
        }
      });
    });
    const reset = await dial(at(listener));
    reset.write('reset');
    expect(await ending(reset)).toBe('ECONNRESET');
    const closed = await dial(at(listener));
    closed.write('one');
    closed.once('data', () => closed.end('two'));
    expect((await readAll(closed)).toString()).toBe('heard one and two');
  });

  it('tells the host of a reset by the client', async () => {
    const porter = await connectPorter();
    const failed = deferred<unknown>();
    const listener = await porter.listen({ host: '127.0.0.1', port: 0 }, (tunnel) => {
      tunnel.once('error', failed.resolve).pipe(tunnel);
    });
    const socket = await dial(at(listener));
    await ask(socket, 'hello');
    socket.resetAndDestroy();
    expect(await failed.promise).toMatchObject({ code: 'tunnel_reset' });
  });

  it('refuses connections beyond its share of descriptors, tells the host, and goes on', async () => {
    const porter = await connectPorter(startPorter(['--exit-with-host', '--nofile=128']));
    const noticed = new Promise((resolve) => porter.onNotice(resolve));
    const listener = await porter.listen({ host: '127.0.0.1', port: 0 }, echo);
    const outcomes = await tryMany(listener, 40);
    expect(outcomes.filter((outcome) => outcome === 'still here')).toHaveLength(32);
    expect(outcomes.filter((outcome) => outcome === 'ECONNRESET')).toHaveLength(8);
    expect(await noticed).toMatchObject({ kind: 3 });
    expect((await runIn(porter, ['echo', 'fine'])).stdout).toBe('fine\n');
  });

  it('refuses connections when other things have taken all descriptors, and recovers', async () => {
    const porter = await connectPorter(startPorter(['--exit-with-host', '--nofile=96']));
    const listener = await porter.listen({ host: '127.0.0.1', port: 0 }, echo);
    const running: Captured[] = [];
    for (let index = 0; index < 10; index++) {
      const next = capture(porter, {
        argv: ['sleep', '1000'],
        env: { PATH: '/usr/bin:/bin' },
        cwd: '/',
        stdin: true,
      });
      await next.exec.started;
      running.push(next);
    }
    // Fewer than its share of descriptors, but more than the programs have left.
    const outcomes = await tryMany(listener, 24);
    expect(new Set(outcomes)).toContain('ECONNRESET');
    expect(outcomes.every((outcome) => ['ECONNRESET', 'still here'].includes(outcome))).toBe(true);
    for (const { exec } of running) exec.kill(0);
    await Promise.all(
      running.map(async ({ exec }) => {
        await exec.result;
        exec.forget();
      }),
    );
    await porter.ping();
    await working(listener);
  });
});

/** Opens connections side by side and says of each what became of it. */
async function tryMany(listener: Listener, count: number): Promise<readonly string[]> {
  return await Promise.all(
    Array.from({ length: count }, async () => {
      const socket = await dial(at(listener)).catch(() => undefined);
      if (socket === undefined) return 'ECONNRESET';
      return await Promise.race([ending(socket), ask(socket, 'still here')]);
    }),
  );
}

/** Opens one connection and waits until it works. */
async function working(listener: Listener): Promise<Socket> {
  const socket = await dial(at(listener));
  expect(await ask(socket, 'works')).toBe('works');
  return socket;
}

async function gone(porter: Porter): Promise<void> {
  porter.close();
  await porter.closed;
}

describe('when the host changes', () => {
  it('connections are reset, listeners stay and refuse until the new host has asked for them', async () => {
    const { first, takeOver } = await lastingPorter();
    const path = join(await temporaryFolder(), 'socket');
    const tcp = await first.listen({ host: '127.66.0.7', port: 0 }, echo);
    await first.listen({ path }, echo);
    const before = await working(tcp);
    const ended = ending(before);
    const second = await takeOver();
    expect(await ended).toBe('ECONNRESET');
    expect(await fate(at(tcp))).toBe('ECONNRESET');
    const known = await second.listeners();
    expect(known).toEqual([
      { stream: tcp.stream, kind: 'tcp', address: '127.66.0.7', port: tcp.port },
      { stream: tcp.stream + 1, kind: 'path', address: path, port: 0 },
    ]);
    const [first0] = known;
    if (first0 === undefined) throw new Error('no listener');
    // Known, and nobody wants it yet.
    expect(await fate(at(tcp))).toBe('ECONNRESET');
    const resumed = second.resumeListener(first0, echo);
    await working(resumed);
    const third = await second.listen({ host: '127.0.0.1', port: 0 }, echo);
    expect(third.stream).toBeGreaterThan(tcp.stream + 1);
    await working(third);
    await resumed.close();
    await expect(dial(at(tcp))).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  });

  it('without a host a connection is reset at once', async () => {
    const { first, takeOver } = await lastingPorter();
    const listener = await first.listen({ host: '127.0.0.1', port: 0 }, echo);
    const before = await working(listener);
    const ended = ending(before);
    await gone(first);
    expect(await ended).toBe('ECONNRESET');
    const from = performance.now();
    expect(await fate(at(listener))).toBe('ECONNRESET');
    expect(performance.now() - from).toBeLessThan(30_000);
    const second = await takeOver();
    const [known] = await second.listeners();
    if (known === undefined) throw new Error('no listener');
    await working(second.resumeListener(known, echo));
  });

  it('an inward tunnel fails with its host', async () => {
    const { first, takeOver } = await lastingPorter();
    const listener = await first.listen({ host: '127.0.0.1', port: 0 }, echo);
    const tunnel = await first.connect(at(listener));
    const failed = once(tunnel.resume(), 'error');
    await takeOver();
    expect((await failed)[0]).toMatchObject({ code: 'porter_superseded' });
    await expect(first.connect(at(listener))).rejects.toMatchObject({ code: 'porter_superseded' });
  });
});
