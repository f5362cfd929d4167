import type http from 'node:http';
import http2 from 'node:http2';
import https from 'node:https';
import tls from 'node:tls';
import { describe, expect, it, onTestFinished } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import {
  connectThrough,
  LoopbackSession,
  listen,
  listenIntercepting,
} from '../../../test/support/loopback-gate.ts';
import { SandboxAuthority } from './sandbox-authority.ts';
import { upstreamTls } from './system-roots.ts';

const company = SandboxAuthority.create('a company', new Date());

const echo: http.RequestListener = (request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    const body = Buffer.concat(chunks);
    response.setHeader('x-method', request.method ?? '');
    response.end(JSON.stringify({ url: request.url, host: request.headers.host, bytes: body.length }));
  });
};

async function world(
  handler: http.RequestListener = echo,
  options: { host?: string; by?: SandboxAuthority } = {},
) {
  const server = https.createServer(
    (options.by ?? company).leafFiles(options.host ?? 'allowed.test'),
    handler,
  );
  const port = await listen(server);
  const session = new LoopbackSession({
    ports: { 'allowed.test': port, 'other.test': port },
    inspects: true,
  });
  const ca = SandboxAuthority.create('box', new Date());
  const proxy = await listenIntercepting(session, { ca, upstreamTls: upstreamTls([company.certificatePem]) });
  return { server, session, ca, proxy };
}

/** A TLS connection to `host` through the gate. */
async function tunnel(
  proxy: number,
  ca: SandboxAuthority,
  { host = 'allowed.test', ...options }: tls.ConnectionOptions & { host?: string } = {},
): Promise<tls.TLSSocket> {
  const socket = await connectThrough(proxy, `${host}:443`);
  const secured = tls.connect({ socket, servername: host, ca: ca.certificatePem, ...options });
  secured.once('error', () => socket.destroy());
  await new Promise<void>((resolve, reject) => secured.once('secureConnect', resolve).once('error', reject));
  return secured;
}

async function ask(socket: tls.TLSSocket, text: string): Promise<string> {
  socket.write(text);
  return await new Promise((resolve, reject) => {
    let all = '';
    socket.on('data', (chunk: Buffer) => {
      all += chunk.toString();
    });
    socket.on('end', () => resolve(all));
    socket.on('error', reject);
  });
}

const get = (host = 'allowed.test', path = '/x'): string =>
  `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`;

describe('an opened TLS connection', () => {
  it('[R6] answers for the server and judges what is inside: Host must be the name in the greeting', async () => {
    const { session, ca, proxy } = await world();
    expect(await ask(await tunnel(proxy, ca), get())).toContain(
      '{"url":"/x","host":"allowed.test","bytes":0}',
    );
    const mismatch = await ask(await tunnel(proxy, ca), get('other.test'));
    expect(mismatch).toMatch(/^HTTP\/1\.1 403.*host_mismatch/s);
    expect(session.dialled).toEqual(['allowed.test']);
  });

  it('another name in the greeting than in CONNECT, and none, are told in words', async () => {
    const { session, ca, proxy } = await world();
    const lenient = { rejectUnauthorized: false } as const;
    const other = await tunnel(proxy, ca, { servername: 'other.test', ...lenient });
    expect(await ask(other, get())).toMatch(/^HTTP\/1\.1 403.*sni_mismatch/s);
    const none = await tunnel(proxy, ca, { servername: '', ...lenient });
    expect(await ask(none, get())).toMatch(/^HTTP\/1\.1 403.*sni_missing/s);
    expect(session.dialled).toEqual([]);
  });

  it('the CA of another sandbox is not trusted', async () => {
    const { session, proxy } = await world();
    const stranger = SandboxAuthority.create('stranger', new Date());
    await expect(tunnel(proxy, stranger)).rejects.toThrow(/unable to verify|self-signed|signature/i);
    await expect
      .poll(() => session.outcomes[0]?.error ?? '', { timeout: 10_000 })
      .toMatch(/may not trust the CA/);
  });

  it('a server whose certificate is not valid is refused in words, and gets nothing', async () => {
    const stranger = SandboxAuthority.create('stranger', new Date());
    for (const options of [{ by: stranger }, { host: 'elsewhere.test' }]) {
      let asked = 0;
      const { ca, proxy } = await world(() => asked++, options);
      const answer = await ask(await tunnel(proxy, ca), get());
      expect(answer).toMatch(/^HTTP\/1\.1 502.*upstream_certificate/s);
      // The server chose its names, which may be a value.
      expect(answer).not.toContain('elsewhere');
      expect(asked).toBe(0);
    }
  });

  it('HTTP/2: streams side by side, bodies, HEAD, denials, and the same checks', async () => {
    const { session, ca, proxy } = await world();
    const socket = await tunnel(proxy, ca, { ALPNProtocols: ['h2'] });
    const client = http2.connect('https://allowed.test', { createConnection: () => socket });
    onTestFinished(() => client.destroy());
    const request = async (headers: http2.OutgoingHttpHeaders, body?: Buffer) => {
      const stream = client.request(headers, { endStream: body === undefined });
      if (body !== undefined) stream.end(body);
      const head = await new Promise<http2.IncomingHttpHeaders>((resolve) =>
        stream.once('response', resolve),
      );
      let text = '';
      for await (const chunk of stream) text += String(chunk);
      return { status: head[':status'], method: head['x-method'], text };
    };
    const many = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        request({ ':path': `/${index}`, ':method': 'POST' }, Buffer.alloc(100_000 + index)),
      ),
    );
    expect(many.map(({ text }) => JSON.parse(text).bytes)).toEqual(many.map((_, index) => 100_000 + index));
    expect(await request({ ':path': '/h', ':method': 'HEAD' })).toMatchObject({
      status: 200,
      method: 'HEAD',
      text: '',
    });
    const bad = await request({ ':path': '/', ':authority': 'other.test' });
    expect([bad.status, JSON.parse(bad.text).error.code]).toEqual([403, 'host_mismatch']);
    const path = await request({ ':path': '/a/%2e%2e/b' });
    expect([path.status, JSON.parse(path.text).error.code]).toEqual([403, 'ambiguous_path']);
    expect(session.outcomes.filter(({ status }) => status === 200)).toHaveLength(21);
  });

  it('events of a server arrive one by one, by HTTP/2, too', async () => {
    let more: () => void = () => {};
    const { ca, proxy } = await world((_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write('data: 1\n\n');
      more = () => void response.end('data: 2\n\n');
    });
    const socket = await tunnel(proxy, ca, { ALPNProtocols: ['h2'] });
    const client = http2.connect('https://allowed.test', { createConnection: () => socket });
    onTestFinished(() => client.destroy());
    const seen: string[] = [];
    for await (const chunk of client.request({ ':path': '/' })) {
      seen.push(String(chunk));
      // The second exists only because the first has arrived.
      if (seen.length === 1) more();
    }
    expect(seen).toEqual(['data: 1\n\n', 'data: 2\n\n']);
  });

  it('a client that gives up takes its request to the server with it, and no other', async () => {
    const closed: (string | undefined)[] = [];
    const asked: (() => void)[] = [];
    const waiting = new Promise<void>((resolve) => asked.push(resolve));
    const { session, ca, proxy } = await world((request, response) => {
      if (request.url === '/quick') {
        response.end('quick');
        return;
      }
      response.on('close', () => closed.push(request.url));
      for (const tell of asked) tell();
    });
    const socket = await tunnel(proxy, ca, { ALPNProtocols: ['h2'] });
    const client = http2.connect('https://allowed.test', { createConnection: () => socket });
    onTestFinished(() => client.destroy());
    const given = client.request({ ':path': '/slow' });
    given.on('error', () => {});
    await waiting;
    given.close(http2.constants.NGHTTP2_CANCEL);
    await expect.poll(() => closed, { timeout: 10_000 }).toEqual(['/slow']);
    for (let count = 0; count < 3; count++) {
      let text = '';
      for await (const chunk of client.request({ ':path': '/quick' })) text += String(chunk);
      expect(text).toBe('quick');
    }
    // The end of one stream leaves the connection to the server for the next.
    expect(session.dialled).toHaveLength(2);
  });

  it('a WebSocket passes through it', async () => {
    const { server, ca, proxy } = await world();
    const sockets = new WebSocketServer({ server });
    sockets.on('connection', (peer) => peer.on('message', (data) => peer.send(`got ${String(data)}`)));
    const socket = await tunnel(proxy, ca);
    const client = new WebSocket('wss://allowed.test/', { createConnection: () => socket });
    onTestFinished(() => client.terminate());
    await new Promise<void>((resolve) => client.once('open', () => resolve()));
    client.send('hello');
    const answer = await new Promise((resolve) => client.once('message', (data) => resolve(String(data))));
    expect(answer).toBe('got hello');
  });

  it('a daemon that starts again goes on with the same CA', () => {
    const ca = SandboxAuthority.create('box', new Date());
    const restored = SandboxAuthority.restore(ca.stored());
    expect(restored.certificatePem).toBe(ca.certificatePem);
    expect(restored.stored()).toEqual(ca.stored());
  });
});
