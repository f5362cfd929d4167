import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type WebSocket, WebSocketServer } from 'ws';
import { ClientWebSocket } from './web-socket.ts';
import { FrameReader } from './web-socket-frames.ts';

interface Pair {
  readonly client: ClientWebSocket;
  readonly server: WebSocket;
  readonly http: Server;
}

async function listen(): Promise<{ readonly http: Server; readonly socketPath: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'sally-ws-'));
  const socketPath = join(folder, 's');
  const http = createServer((_, response) => void response.writeHead(404).end());
  http.listen(socketPath);
  await once(http, 'listening');
  onTestFinished(async () => {
    http.closeAllConnections();
    http.close();
    await rm(folder, { recursive: true, force: true });
  });
  return { http, socketPath };
}

async function connected(mostMessageBytes = 2 ** 20): Promise<Pair> {
  const { http, socketPath } = await listen();
  const sockets = new WebSocketServer({ server: http });
  const opened = once(sockets, 'connection') as Promise<[WebSocket]>;
  const client = new ClientWebSocket({ socketPath, path: '/x', headers: {}, mostMessageBytes });
  const [server] = await opened;
  // Each end is open when it hears of the other.
  const heard = once(client, 'message');
  server.send('hello');
  await heard;
  onTestFinished(() => {
    server.terminate();
    sockets.close();
  });
  return { client, server, http };
}

describe('the client’s WebSocket, against a server that others use', () => {
  it.each([0, 1, 125, 126, 65_535, 65_536, 700_000])('carries %i bytes both ways', async (size) => {
    const { client, server } = await connected();
    const data = Buffer.alloc(size, Buffer.from(Array.from({ length: 251 }, (_, index) => index)));
    server.on('message', (message, isBinary) => server.send(message, { binary: isBinary }));
    const answers: Promise<readonly unknown[]> = once(client, 'message');
    client.send(data);
    const [received, isBinary] = await answers;
    expect((received as Buffer).equals(data)).toBe(true);
    expect(isBinary).toBe(true);
  });

  it('carries text, fragments and pings', async () => {
    const { client, server } = await connected();
    const ponged = once(server, 'pong');
    server.ping('are you there');
    expect(String((await ponged)[0])).toBe('are you there');
    const received = once(client, 'message');
    server.send('in ', { fin: false });
    server.send('parts', { fin: true });
    const [data, isBinary] = await received;
    expect(String(data)).toBe('in parts');
    expect(isBinary).toBe(false);
  });

  it('delivers nothing while it is paused, and everything afterwards', async () => {
    const { client, server } = await connected();
    const received: string[] = [];
    client.on('message', (data) => {
      received.push(String(data));
      client.pause();
    });
    for (const text of ['one', 'two', 'three']) server.send(text);
    await once(client, 'message');
    expect(received).toEqual(['one']);
    client.resume();
    client.resume();
    expect(received.length).toBeLessThanOrEqual(3);
    while (received.length < 3) {
      const next = once(client, 'message');
      client.resume();
      if (received.length < 3) await next;
    }
    expect(received).toEqual(['one', 'two', 'three']);
  });

  it.each(['client', 'server'] as const)('ends when the %s closes it', async (who) => {
    const pair = await connected();
    const ended = [once(pair.client, 'close'), once(pair.server, 'close')];
    pair[who].close();
    await Promise.all(ended);
    expect(pair.client.isOpen).toBe(false);
  });

  it('says what it was answered when it is no WebSocket', async () => {
    const { socketPath } = await listen();
    const client = new ClientWebSocket({ socketPath, path: '/x', headers: {}, mostMessageBytes: 100 });
    const [error] = await once(client, 'error');
    expect(String(error)).toContain('404');
  });

  it('ends at a message that is too long', async () => {
    const { client, server } = await connected(100);
    const failed = once(client, 'error');
    server.send('x'.repeat(101));
    expect(String((await failed)[0])).toContain('longer');
  });
});

describe('frames', () => {
  it.each([
    ['a masked frame', [0x82, 0x80, 0, 0, 0, 0]],
    ['a reserved bit', [0xc2, 0x00]],
    ['a continuation of nothing', [0x80, 0x00]],
    ['a long ping', [0x89, 126, 0, 126]],
    ['a ping in parts', [0x09, 0x00]],
  ])('refuses %s', (_name, bytes) => {
    const reader = new FrameReader(1000);
    reader.push(Buffer.from(bytes));
    expect(() => reader.next()).toThrow();
  });

  it('takes bytes in any pieces', () => {
    const reader = new FrameReader(1000);
    const found: string[] = [];
    for (const byte of [0x81, 0x02, 0x68, 0x69, 0x81, 0x01, 0x21]) {
      reader.push(Buffer.from([byte]));
      for (let next = reader.next(); next !== undefined; next = reader.next()) found.push(String(next.data));
    }
    expect(found).toEqual(['hi', '!']);
  });
});
