import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, it, onTestFinished } from 'vitest';
import { WebSocket } from 'ws';
import { bundleProgram } from '../../test/support/child-program.ts';
import { ask, littleDaemon } from '../../test/support/little-daemon.ts';
import { temporaryFolder } from '../../test/support/little-engine.ts';
import { startWriters } from '../../test/support/shared-writers.ts';
import { dial, heard, lossOf } from '../../test/support/sockets.ts';
import { isOwnHost, provideToken, readListenAddress } from './auth.ts';

const token = 'a'.repeat(43);

describe('over TCP', () => {
  it('answers only who has the token, by an address, and from no other origin', async () => {
    const { daemon } = await littleDaemon();
    const port = await daemon.listenOnPort({ host: '127.0.0.1', port: 0 }, token);
    const status = async (headers: Record<string, string>): Promise<number> =>
      (await ask({ host: '127.0.0.1', port }, 'GET', '/v1/health', { headers })).status;
    const authorization = `Bearer ${token}`;
    expect(await status({ authorization })).toBe(200);
    expect(await status({})).toBe(401);
    expect(await status({ authorization: `Bearer ${token}x` })).toBe(401);
    expect(await status({ authorization: `Basic ${token}` })).toBe(401);
    expect(await status({ authorization, host: 'evil.example' })).toBe(403);
    expect(await status({ authorization, host: `127.0.0.1.evil.example:${port}` })).toBe(403);
    expect(await status({ authorization, host: `localhost:${port}` })).toBe(200);
    expect(await status({ authorization, origin: 'https://evil.example' })).toBe(403);
    expect(await status({ authorization, origin: 'null' })).toBe(403);
    expect(await status({ authorization, origin: `http://127.0.0.1:${port}` })).toBe(200);
  });

  it('asks WebSockets for the same', async () => {
    const { daemon } = await littleDaemon();
    const port = await daemon.listenOnPort({ host: '127.0.0.1', port: 0 }, token);
    const path = '/v1/sandboxes/none/execs/none/stream';
    const status = async (headers: Record<string, string>): Promise<number> => {
      const socket = new WebSocket(`ws://127.0.0.1:${port}${path}`, { headers });
      socket.on('error', () => {});
      const [, answer] = await once(socket, 'unexpected-response');
      answer.destroy();
      return answer.statusCode as number;
    };
    expect(await status({})).toBe(401);
    expect(await status({ authorization: `Bearer ${token}`, origin: 'https://evil.example' })).toBe(403);
    expect(await status({ authorization: `Bearer ${token}` })).toBe(404);
  });
});

describe('[N5] a stranger on the TCP port', () => {
  it('holds no connection beyond the refusal, while a client with the token keeps its own', async () => {
    const { daemon } = await littleDaemon();
    const port = await daemon.listenOnPort({ host: '127.0.0.1', port: 0 }, token);
    const open = async (): Promise<Socket> => {
      const socket = connect(port, '127.0.0.1').setEncoding('utf8');
      onTestFinished(() => void socket.destroy());
      await once(socket, 'connect');
      return socket;
    };
    const known = await open();
    const head = `GET /v1/health HTTP/1.1\r\nHost: 127.0.0.1\r\n`;
    known.write(`${head}Authorization: Bearer ${token}\r\n\r\n`);
    expect(String((await once(known, 'data'))[0])).toMatch(/^HTTP\/1\.1 200 /);
    for (const line of ['Authorization: Bearer x', 'Origin: http://evil.example']) {
      const stranger = await open();
      stranger.write(`${head}${line}\r\n\r\n`);
      // To its end.
      expect(await text(stranger)).toMatch(/^HTTP\/1\.1 40[13] /);
    }
    known.write(`${head}Authorization: Bearer ${token}\r\n\r\n`);
    expect(String((await once(known, 'data'))[0])).toMatch(/^HTTP\/1\.1 200 /);
  });

  it('holds no connection by its half of a WebSocket that is refused', async () => {
    const { daemon } = await littleDaemon();
    const port = await daemon.listenOnPort({ host: '127.0.0.1', port: 0 }, token);
    const stranger = await dial({ port, host: '127.0.0.1' });
    stranger.write(
      'GET /v1 HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
    );
    expect(await heard(stranger)).toMatch(/^HTTP\/1\.1 401 /);
    expect(await lossOf(stranger)).toMatch(/^(ECONNRESET|EPIPE)$/);
  });

  it('is turned away beyond 1024 connections, and the Unix socket is not', async () => {
    const { daemon, ask: askBySocket } = await littleDaemon();
    const port = await daemon.listenOnPort({ host: '127.0.0.1', port: 0 }, token);
    const health = async (): Promise<number> =>
      (
        await ask({ host: '127.0.0.1', port }, 'GET', '/v1/health', {
          headers: { authorization: `Bearer ${token}`, connection: 'close' },
        })
      ).status;
    expect(await health()).toBe(200);
    const sockets = await Promise.all(
      Array.from({ length: 1024 }, async () => {
        const socket = connect(port, '127.0.0.1').on('error', () => {});
        await once(socket, 'connect');
        return socket;
      }),
    );
    onTestFinished(() => {
      for (const socket of sockets) socket.destroy();
    });
    await expect(health()).rejects.toMatchObject({ code: 'ECONNRESET' });
    expect((await askBySocket('GET', '/v1/health')).status).toBe(200);
  });
});

describe('the token', () => {
  it('is made once, long, and readable by nobody else', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'sally-token-'));
    onTestFinished(() => rm(folder, { recursive: true }));
    const path = join(folder, 'token');
    const first = await provideToken(path);
    expect(Buffer.from(first, 'base64url')).toHaveLength(32);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect(await provideToken(path)).toBe(first);
    expect((await readFile(path, 'utf8')).trim()).toBe(first);
  });

  it.each([
    ['is not there', undefined],
    ['is empty', ''],
  ])('is the same for daemons that start at once where the file %s', async (_how, content) => {
    const { outfile } = await bundleProgram('./shared-writer.ts');
    const folder = temporaryFolder();
    if (content !== undefined) await writeFile(join(folder, 'token'), content);
    const children = await startWriters(outfile, Array(5).fill({ kind: 'token', folder, who: '', count: 1 }));
    for (const child of children) child.go();
    const tokens = await Promise.all(children.map(async (child) => (await child.lines())[0]));
    expect(new Set(tokens)).toEqual(new Set([await provideToken(join(folder, 'token'))]));
    expect(await readdir(folder)).toEqual(['token']);
  });
});

describe('where to listen', () => {
  it.each(['127.0.0.1:80', '127.9.9.9:0', '[::1]:7333'])('takes %s', (address) => {
    expect(readListenAddress(address, false).port).toBeGreaterThanOrEqual(0);
  });

  it.each(['0.0.0.0:80', '192.168.1.2:80', '[::]:80', 'localhost:80', '127.0.0.1', '127.0.0.1:99999', ':80'])(
    'refuses %s',
    (text) => {
      expect(() => readListenAddress(text, false)).toThrow(/./);
    },
  );

  it('listens anywhere only when told that this is dangerous', () => {
    expect(readListenAddress('0.0.0.0:80', true)).toEqual({ host: '0.0.0.0', port: 80 });
  });

  it.each([
    ['127.0.0.1:80', true],
    ['[::1]', true],
    ['localhost', true],
    ['localhost.evil.example', false],
    ['evil.example:80', false],
    ['', false],
    ['127.0.0.1@evil.example', false],
  ])('takes the Host %j: %s', (header, isOwn) => {
    expect(isOwnHost(header)).toBe(isOwn);
  });
});
