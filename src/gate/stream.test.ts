/** Connections to a host that a secret is bound to, where a rule lets any bytes pass: through the gate as the daemon puts it together. */

import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import http from 'node:http';
import http2 from 'node:http2';
import https from 'node:https';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import tls from 'node:tls';
import { describe, expect, it, onTestFinished } from 'vitest';
import { connectThrough, listen } from '../../test/support/loopback-gate.ts';
import { sandboxIdFrom } from '../protocol/ids.ts';
import type { EgressSpec } from '../protocol/spec.ts';
import { GateKeyFiles } from '../store/gate-keys.ts';
import { openSecrets } from '../store/secrets.ts';
import { BoxConnections } from './box-connections.ts';
import { BoxCredentials } from './box-credentials.ts';
import type { Outcome } from './contract.ts';
import { KnownValues } from './credentials/known-values.ts';
import { PhantomRegistry } from './credentials/phantoms.ts';
import { SandboxAuthority } from './tls/sandbox-authority.ts';
import { upstreamTls } from './tls/system-roots.ts';

const value = 'the-real-value-0123456789';
const stars = '*'.repeat(value.length);
const id = sandboxIdFrom(Buffer.alloc(10, 1));
const hosts = ['api.test', 'free.test'] as const;
type Host = (typeof hosts)[number];
const entrances = ['connect', 'socks', 'name'] as const;
type Entrance = (typeof entrances)[number];

/** A proxy that finds each host and port on a port of this machine. */
async function upstream(places: ReadonlyMap<string, number>): Promise<number> {
  const server = http.createServer();
  server.on('connect', ({ url = '' }: http.IncomingMessage, client: net.Socket, head: Buffer) => {
    const target = net.connect({ port: places.get(url) ?? 0, host: '127.0.0.1', allowHalfOpen: true });
    for (const [one, other] of [
      [client, target],
      [target, client],
    ] as const) {
      one.on('error', () => other.destroy());
      one.on('close', () => other.destroy());
    }
    client.write('HTTP/1.1 200 OK\r\n\r\n');
    target.write(head);
    client.pipe(target).pipe(client);
  });
  return await listen(server);
}

/** The same servers on the same ports of both hosts; a secret is bound to `api.test:8443` alone. */
async function world(egress: EgressSpec) {
  const company = SandboxAuthority.create('a company', new Date());
  const asked: http.IncomingHttpHeaders[] = [];
  const answer: http.RequestListener = ({ headers }, response) => {
    asked.push(headers);
    response.end(`kept: ${value}`);
  };
  const places = new Map<string, number>();
  for (const host of hosts) {
    const secure = await listen(https.createServer(company.leafFiles(host), answer));
    const raw = net.createServer((socket) => socket.on('data', (data) => socket.write(`raw ${data}`)));
    const greets = net.createServer((socket) => {
      socket.write('SSH-2.0-server\r\n');
      socket.on('data', (data) => socket.write(`raw ${data}`));
    });
    const settings = http2.createServer();
    for (const port of [443, 8443]) places.set(`${host}:${port}`, secure);
    places.set(`${host}:8080`, await listen(http.createServer(answer)));
    places.set(`${host}:22`, await listen(greets));
    places.set(`${host}:80`, await listen(raw));
    places.set(`${host}:9000`, places.get(`${host}:80`) ?? 0);
    places.set(`${host}:9001`, await listen(settings));
  }
  const stateDir = mkdtempSync(join(tmpdir(), 'sallyport-gate-'));
  onTestFinished(() => rmSync(stateDir, { recursive: true }));
  const source = openSecrets(stateDir);
  const binding = {
    hosts: ['api.test'],
    port: 8443,
    headers: ['authorization'],
    env: ['TOKEN'],
    prefix: '',
  };
  await source.set('ci', { binding, value });
  const credentials = new BoxCredentials(id, ['ci'], {
    source,
    registry: new PhantomRegistry(),
    values: new KnownValues(),
    keys: new GateKeyFiles(stateDir),
    upstreamTls: upstreamTls([company.certificatePem]),
  });
  const outcomes: Outcome[] = [];
  const place = { host: '127.0.0.1', port: await upstream(places) };
  const connections = new BoxConnections({
    sandbox: 'box',
    egress,
    credentials,
    resolver: { resolve: async () => [] },
    proxy: async () => ({ kind: 'http', place, label: 'the upstream' }),
    written: (outcome) => void outcomes.push(outcome),
    note: () => {},
    report: () => {},
  });
  onTestFinished(() => connections.end());
  return {
    connections,
    outcomes,
    asked,
    proxy: await listen(
      net.createServer({ allowHalfOpen: true }, (client) => connections.serve(client, { at: 'proxy' })),
    ),
    phantom: credentials.credentials.env()['TOKEN'] ?? '',
    trusted: credentials.trust(undefined, '/etc/sallyport').files[0]?.content ?? '',
    company: company.certificatePem,
  };
}
type World = Awaited<ReturnType<typeof world>>;

/** A connection of a program inside. */
async function open(
  { connections, proxy }: World,
  entrance: Entrance,
  host: Host,
  port: number,
): Promise<net.Socket> {
  switch (entrance) {
    case 'connect':
      return await connectThrough(proxy, `${host}:${port}`);
    case 'name': {
      const named = net.createServer({ allowHalfOpen: true }, (client) =>
        connections.serve(client, { at: 'name', host, port }),
      );
      return connectTo(await listen(named));
    }
    case 'socks': {
      const socket = connectTo(proxy);
      socket.write(Buffer.from([5, 1, 0]));
      await once(socket, 'data');
      const name = Buffer.from(host);
      socket.write(
        Buffer.concat([Buffer.from([5, 1, 0, 3, name.length]), name, Buffer.from([port >> 8, port & 255])]),
      );
      await once(socket, 'data');
      return socket;
    }
  }
}

function connectTo(port: number): net.Socket {
  const socket = net.connect(port, '127.0.0.1');
  onTestFinished(() => void socket.destroy());
  socket.on('error', () => {});
  return socket;
}

/** What comes until the other side ends, or until there is `enough`. */
async function read(socket: net.Socket, enough = (_text: string): boolean => false): Promise<string> {
  let text = '';
  for await (const chunk of socket as AsyncIterable<Buffer>) {
    text += chunk.toString('latin1');
    if (enough(text)) break;
  }
  return text;
}

const get = (host: string, port: number, more = ''): string =>
  `GET /v1 HTTP/1.1\r\nHost: ${host}:${port}\r\nConnection: close\r\n${more}\r\n`;

async function ask(all: World, entrance: Entrance, host: Host, port: number): Promise<string> {
  const socket = await open(all, entrance, host, port);
  const isPlain = port === 8080;
  const secured = isPlain
    ? socket
    : tls.connect({ socket, servername: host, ca: host === 'api.test' ? all.trusted : all.company });
  // In plain HTTP, and on another port than its own, a phantom is refused, which is tested elsewhere.
  const login = port === 8443 ? `Authorization: Bearer ${all.phantom}\r\n` : '';
  secured.write(get(host, port, host === 'api.test' ? login : ''));
  return await read(secured);
}

/** Rules for any bytes on these ports of both hosts. */
const anyBytes = (...ports: readonly number[]): EgressSpec => ({
  allow: ports.flatMap((port) => hosts.map((host) => `${host}:${port}/tcp`)),
});

const openRules: readonly (readonly [what: string, egress: EgressSpec, port: number])[] = [
  ['mode learn, TLS on 8443', { mode: 'learn' }, 8443],
  ['mode learn, TLS on 443', { mode: 'learn' }, 443],
  ['mode dangerously-allow-all, HTTP on 8080', { mode: 'dangerously-allow-all' }, 8080],
  ['a rule for any bytes on 443, TLS', anyBytes(443), 443],
  ['a rule for any bytes on 8443, TLS', anyBytes(8443), 8443],
  ['a rule for any bytes on 8080, HTTP', anyBytes(8080), 8080],
];

describe.each(openRules)('with %s', (_what, egress, port) => {
  it.each(entrances)(
    '[R7] a secret works and is masked by %s, and a host without one is a tunnel',
    async (entrance) => {
      const all = await world(egress);
      expect(await ask(all, entrance, 'api.test', port)).toContain(`kept: ${stars}`);
      if (port === 8443) expect(all.asked[0]?.authorization).toBe(`Bearer ${value}`);
      // The certificate is the server's own, so it was not opened.
      expect(await ask(all, entrance, 'free.test', port)).toContain(`kept: ${value}`);
    },
  );
});

describe('where any bytes may pass to a host with a secret', () => {
  const learn: EgressSpec = { mode: 'learn' };

  it.each(entrances)(
    '[R7] a server that speaks first, and bytes that are neither TLS nor HTTP, pass by %s',
    async (entrance) => {
      for (const egress of [learn, anyBytes(22, 9000)]) {
        const all = await world(egress);
        for (const host of hosts) {
          const greeted = await open(all, entrance, host, 22);
          const [greeting] = (await once(greeted, 'data')) as [Buffer];
          expect(String(greeting)).toBe('SSH-2.0-server\r\n');
          greeted.write('SSH-2.0-client of a user\r\n');
          expect(await read(greeted, (text) => text.endsWith('\n'))).toBe('raw SSH-2.0-client of a user\r\n');

          for (const bytes of ['*1\r\n$4\r\nPING\r\n', '\0\x01\x02', 'EHLO me\r\n', '{"id":1}', '<stream>']) {
            const first = await open(all, entrance, host, 9000);
            first.write(bytes);
            expect(await read(first, (text) => text.includes(bytes))).toBe(`raw ${bytes}`);
          }
        }
      }
    },
  );

  it('[R7] a connection in which neither side has spoken ends when the rules no longer allow it', async () => {
    const all = await world(learn);
    const socket = await open(all, 'connect', 'api.test', 9000);
    const ended = read(socket);
    await all.connections.change({ mode: 'deny' });
    expect(await ended).toBe('');
  });

  it('[R7] bytes that are neither TLS nor HTTP pass on port 80 of an open mode, too', async () => {
    const all = await world(learn);
    for (const host of hosts) {
      const socket = await open(all, 'connect', host, 80);
      socket.write('\0\x01\x02');
      expect(await read(socket, (text) => text.includes('\x02'))).toBe('raw \0\x01\x02');
    }
  });

  it.each([
    ['empty lines before it', '\r\n\n', 'GET /v1 HTTP/1.1'],
    ['a method in lower case', '', 'get /v1 HTTP/1.1'],
    ['an unknown method', '', 'X-1 /v1 HTTP/1.1'],
    ['other white space', '', 'GET\x0b/v1\x1cHTTP/1.1'],
    ['no version', '', 'GET /v1'],
  ])(
    '[R7] a request with %s is not taken for other bytes, also byte by byte',
    async (_what, before, line) => {
      const all = await world(anyBytes(9000));
      const request = `${before}${line}\r\nHost: api.test:9000\r\nConnection: close\r\n\r\n`;
      for (const pieces of [[request], [...request]]) {
        const socket = await open(all, 'connect', 'api.test', 9000);
        socket.setNoDelay(true);
        for (const piece of pieces) socket.write(piece, 'latin1');
        expect(await read(socket)).not.toContain('raw');
      }
      const other = await open(all, 'connect', 'free.test', 9000);
      other.write(request, 'latin1');
      expect(await read(other, (text) => text.includes('\r\n\r\n'))).toContain(`raw ${request}`);
    },
  );

  it('[R7] a first line without an end is passed when the client ends, and refused when it is too long', async () => {
    const all = await world(anyBytes(9000));
    for (const host of hosts) {
      const ended = await open(all, 'connect', host, 9000);
      ended.end('hello');
      expect(await read(ended)).toBe('raw hello');
    }
    const long = await Promise.all(hosts.map((host) => open(all, 'connect', host, 9000)));
    const texts = long.map(async (socket) => {
      socket.write('x'.repeat(9000));
      return await read(socket, (text) => text.length >= 9000);
    });
    expect(await texts[0]).toBe('');
    expect(await texts[1]).toMatch(/^raw x+/);
    expect(all.outcomes.map(({ decision }) => !decision.allowed && decision.reason)).toContain(
      'the first line is too long',
    );
  });

  it('[R7] a TLS greeting in the form of SSL 2 is not taken for other bytes', async () => {
    const all = await world(anyBytes(9000));
    const greeting = Buffer.from('802e0103030015000000100000', 'hex');
    const socket = await open(all, 'connect', 'api.test', 9000);
    socket.write(greeting);
    expect(await read(socket)).toBe('');
    const other = await open(all, 'connect', 'free.test', 9000);
    other.write(greeting);
    expect(await read(other, (text) => text.length > 4)).toContain('raw');
  });

  it('[R7] a server of HTTP/2 that sends its settings first has not made a tunnel of the connection', async () => {
    const all = await world(anyBytes(9001));
    const free = await open(all, 'connect', 'free.test', 9001);
    const [settings] = (await once(free, 'data')) as [Buffer];
    expect([...settings.subarray(3, 9)]).toEqual([4, 0, 0, 0, 0, 0]);
    const socket = await open(all, 'connect', 'api.test', 9001);
    socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0', 'latin1');
    expect(await read(socket)).toMatch(/^HTTP\/1\.1 400/);
  });
});
