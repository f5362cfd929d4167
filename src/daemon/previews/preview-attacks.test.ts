import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, it, onTestFinished } from 'vitest';
import { dial, heard, lossOf } from '../../../test/support/sockets.ts';
import { until } from '../../../test/support/until.ts';
import type { SandboxSurface } from '../surface.ts';
import { LaunchFiles } from './launch-files.ts';
import { Previews } from './previews.ts';

interface Scene {
  readonly origin: string;
  readonly cookie: string;
  /** What the program inside was sent, a text for each connection. */
  readonly received: readonly string[];
  /** Sends these lines with Host and cookie, and resolves with all that comes until the connection ends. */
  readonly exchange: (lines: readonly string[]) => Promise<string>;
  readonly socket: () => Promise<Socket>;
}

/** A preview of a program that answers each request head with `answer` and ends the connection. */
async function preview(answer: string, { ttlMs = 60_000, keep = false } = {}): Promise<Scene> {
  const received: string[] = [];
  const program = createServer((socket) => {
    socket.on('error', () => {});
    const at = received.push('') - 1;
    let isAnswered = false;
    socket.on('data', (data) => {
      received[at] += data.toString('latin1');
      if (isAnswered || !received[at]?.includes('\r\n\r\n')) return;
      isAnswered = true;
      socket.write(Buffer.from(answer, 'latin1'));
      if (!keep) socket.end();
    });
  });
  program.listen(0, '127.0.0.1');
  await once(program, 'listening');
  const { port: inside } = program.address() as AddressInfo;
  const sandbox = {
    id: 'sb-1',
    name: 'box',
    hold: () => () => {},
    connect: async () => {
      const socket = connect(inside, '127.0.0.1');
      await once(socket, 'connect');
      return socket;
    },
  } as unknown as SandboxSurface;
  const folder = await mkdtemp(join(tmpdir(), 'sallyport-preview-'));
  const files = new LaunchFiles(join(folder, 'previews'));
  const previews = new Previews({ find: () => sandbox, files, now: () => Date.now() });
  onTestFinished(async () => {
    await previews.close();
    program.close();
    await rm(folder, { recursive: true });
  });
  const { url = '', origin } = await previews.open(sandbox, { port: inside, path: '/', ttl_ms: ttlMs });
  const { port, host } = new URL(origin);
  const socket = async (): Promise<Socket> => {
    const made = connect(Number(port), '127.0.0.1').setEncoding('latin1');
    await once(made, 'connect');
    return made;
  };
  const send = async ([first, ...headers]: readonly string[]): Promise<string> => {
    const made = await socket();
    made.write([first, `Host: ${host}`, ...headers, '', ''].join('\r\n'), 'latin1');
    return await text(made);
  };
  const entered = await send([`GET ${url.slice(origin.length)} HTTP/1.1`, 'Connection: close']);
  const cookie = /^set-cookie: ([^;]+);/im.exec(entered)?.[1] ?? '';
  const exchange = (lines: readonly string[]) =>
    send([lines[0] ?? '', `Cookie: ${cookie}`, ...lines.slice(1)]);
  return { origin, cookie, received, exchange, socket };
}

const get = ['GET / HTTP/1.1', 'Connection: close'];
const webSocket = [
  'GET / HTTP/1.1',
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==',
];
const setCookies = (answer: string): readonly string[] =>
  [...answer.matchAll(/^set-cookie: (.*)\r$/gim)].map(([, value = '']) => value);

describe('[N5] an answer of the program behind a preview', () => {
  it.each([
    [
      'a control character in its reason phrase',
      'HTTP/1.1 200 \x01\r\nContent-Length: 2\r\n\r\nok',
      /^HTTP\/1\.1 200 /,
    ],
    ['a status below 100', 'HTTP/1.1 099 Low\r\nContent-Length: 2\r\n\r\nok', /^HTTP\/1\.1 502 /],
    [
      'a 101 that nobody asked for',
      'HTTP/1.1 101 Go\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n',
      /^HTTP\/1\.1 502 /,
    ],
    ['a 101 without an upgrade', 'HTTP/1.1 101 Go\r\n\r\n', /^HTTP\/1\.1 502 /],
    [
      'trailers that are announced with a length',
      'HTTP/1.1 200 OK\r\nTrailer: x\r\nContent-Length: 2\r\n\r\nok',
      /ok$/,
    ],
    ['no HTTP', '\x00\x01\x02', /^HTTP\/1\.1 502 /],
    ['nothing at all', '', /^HTTP\/1\.1 502 /],
    ['a plain page', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok', /^HTTP\/1\.1 200 OK\r\n[\s\S]*ok$/],
  ])('is answered and throws nothing: %s', async (_, bytes, expected) => {
    const { exchange } = await preview(bytes);
    expect(await exchange(get)).toMatch(expected);
  });

  it('sets no cookie for other hosts and none in the place of ours, however it is written, also with a WebSocket', async () => {
    const hostile = [
      'sallyport_preview=a',
      ' sallyport_preview =a; Path=/',
      '\tsallyport_preview\t=a',
      '=sallyport_preview=a',
      'sallyport_preview',
    ];
    const lines = [...hostile, 'app=1; Domain=localhost; Path=/', 'more=sallyport_preview=2;domain = x'];
    const headers = lines.map((line) => `Set-Cookie: ${line}\r\n`).join('');
    const kept = ['app=1; Path=/', 'more=sallyport_preview=2'];
    const page = await preview(`HTTP/1.1 200 OK\r\n${headers}Content-Length: 2\r\n\r\nok`);
    expect(setCookies(await page.exchange(get))).toEqual(kept);
    const accepted = `HTTP/1.1 101 Go\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n${headers}\r\nfirst bytes`;
    const answer = await (await preview(accepted)).exchange(webSocket);
    expect(answer).toMatch(/^HTTP\/1\.1 101 Switching Protocols\r\n[\s\S]*first bytes$/);
    expect(setCookies(answer)).toEqual(kept);
  });
});

describe('[N5] a request for a WebSocket', () => {
  it('that the program refuses ends with its answer: nothing more reaches the program', async () => {
    const refusal = 'HTTP/1.1 200 No\r\nContent-Length: 2\r\n\r\nno';
    const { received, origin, cookie, socket } = await preview(refusal, { keep: true });
    const { host } = new URL(origin);
    const client = await socket();
    const head = [webSocket[0], `Host: ${host}`, `Cookie: ${cookie}`, ...webSocket.slice(1), '', ''];
    // The second request has no cookie: the program would get it unseen.
    client.write(`${head.join('\r\n')}GET /second HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
    expect(await text(client)).toMatch(/^HTTP\/1\.1 200 [\s\S]*connection: close[\s\S]*no$/i);
    expect(received).toHaveLength(1);
    expect(received[0]).toContain('Sec-WebSocket-Key');
    expect(received[0]).not.toContain('/second');
  });
});

describe('[N5] a request through a preview', () => {
  it('with a chunked body is framed for the program, whatever its method', async () => {
    const { exchange, received } = await preview('HTTP/1.1 204 Done\r\n\r\n');
    const lines = ['DELETE / HTTP/1.1', 'Transfer-Encoding: chunked', 'Connection: close'];
    const body = '7\r\nGET /x \r\n0';
    expect(await exchange([...lines, '', body])).toMatch(/^HTTP\/1\.1 204 /);
    expect(received[0]).toMatch(/transfer-encoding: chunked/i);
    expect(received[0]).toContain('7\r\nGET /x \r\n');
  });
});

describe('[N5] a session of a preview', () => {
  it('ends what is connected when its time is over', async () => {
    const accepted = 'HTTP/1.1 101 Go\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nfirst';
    const { exchange } = await preview(accepted, { ttlMs: 500, keep: true });
    // It resolves when the connection ends, which neither side does by itself.
    expect(await exchange(webSocket)).toMatch(/first$/);
  });

  it('leaves no connection open to who has none', async () => {
    const { socket, origin } = await preview('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
    const { host } = new URL(origin);
    for (const name of [host, 'evil.example']) {
      const client = await socket();
      client.write(`GET / HTTP/1.1\r\nHost: ${name}\r\n\r\n`);
      expect(await text(client)).toMatch(name === host ? /^HTTP\/1\.1 401 / : /^HTTP\/1\.1 421 /);
    }
  });

  it('leaves none to who keeps a half of a WebSocket that is refused', async () => {
    const { origin } = await preview('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
    const { host, port } = new URL(origin);
    const client = await dial({ host: '127.0.0.1', port: Number(port) });
    client.write([webSocket[0], `Host: ${host}`, ...webSocket.slice(1), '', ''].join('\r\n'));
    expect(await heard(client)).toMatch(/^HTTP\/1\.1 401 /);
    expect(await lossOf(client)).toMatch(/^(ECONNRESET|EPIPE)$/);
  });

  it('has so many connections at a time that others of the same port keep theirs', async () => {
    const accepted = 'HTTP/1.1 101 Go\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n';
    const { origin, cookie, socket } = await preview(accepted, { keep: true });
    const { host } = new URL(origin);
    const open = async (): Promise<{ readonly client: Socket; readonly head: string }> => {
      const client = await socket();
      onTestFinished(() => void client.destroy());
      client.write(
        [webSocket[0], `Host: ${host}`, `Cookie: ${cookie}`, ...webSocket.slice(1), '', ''].join('\r\n'),
      );
      return { client, head: String((await once(client, 'data'))[0]) };
    };
    const all = await Promise.all(Array.from({ length: 64 }, open));
    expect(all.map(({ head }) => head.slice(9, 12))).toEqual(Array(64).fill('101'));
    expect((await open()).head).toMatch(/^HTTP\/1\.1 503 /);
    all[0]?.client.destroy();
    await until(async () => (await open()).head.startsWith('HTTP/1.1 101 '));
  });
});
