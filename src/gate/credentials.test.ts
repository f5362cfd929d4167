import http from 'node:http';
import http2 from 'node:http2';
import https from 'node:https';
import tls from 'node:tls';
import { deflateSync, gzipSync } from 'node:zlib';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  connectThrough,
  LoopbackSession,
  listen,
  listenIntercepting,
  listenRelay,
  talk,
} from '../../test/support/loopback-gate.ts';
import type { SecretBinding } from '../protocol/secrets.ts';
import { KnownValues } from './credentials/known-values.ts';
import { PhantomRegistry } from './credentials/phantoms.ts';
import { Credentials, type SecretSource } from './credentials.ts';
import { SandboxAuthority } from './tls/sandbox-authority.ts';
import { upstreamTls } from './tls/system-roots.ts';

const real = 'REAL-value-of-the-secret-0123456789';
const binding: SecretBinding = {
  hosts: ['api.test'],
  port: 443,
  path: '/v1',
  headers: ['authorization', 'x-api-key'],
  env: ['API_TOKEN'],
  prefix: 'sk-test-',
  base_url: { env: 'API_BASE_URL', path: '/v1' },
};

/** Secrets that a test changes while requests go on. */
class Secrets implements SecretSource {
  readonly bindings = new Map([['ci', binding]]);
  readonly budgets = new Map<string, number>();
  current: string | undefined = real;

  binding(name: string): SecretBinding | undefined {
    return this.bindings.get(name);
  }
  budget(name: string): number | undefined {
    return this.budgets.get(name);
  }
  boundTo(host: string): readonly { readonly name: string; readonly port: number }[] {
    return [...this.bindings]
      .filter(([, { hosts }]) => hosts.includes(host))
      .map(([name, { port }]) => ({ name, port }));
  }
  async value(): Promise<string> {
    if (this.current === undefined) throw new Error(`the command said ${real}`);
    return this.current;
  }
}

interface Seen {
  readonly url: string;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: string;
}

async function world(answer?: (seen: Seen, response: http.ServerResponse) => void) {
  const company = SandboxAuthority.create('a company', new Date());
  const seen: Seen[] = [];
  const handler: http.RequestListener = (request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('error', () => {});
    request.on('end', () => {
      const one = {
        url: request.url ?? '',
        headers: request.headers,
        body: Buffer.concat(chunks).toString('latin1'),
      };
      seen.push(one);
      if (answer === undefined) response.end('fine');
      else answer(one, response);
    });
  };
  const api = await listen(https.createServer(company.leafFiles('api.test'), handler));
  const evil = await listen(https.createServer(company.leafFiles('evil.test'), handler));
  const plain = await listen(http.createServer(handler));
  const session = new LoopbackSession({
    ports: { 'api.test': api, 'evil.test': evil, 'plain.test': plain },
    inspects: true,
  });
  const registry = new PhantomRegistry();
  const source = new Secrets();
  const credentials = new Credentials({
    sandbox: 'box',
    names: ['ci'],
    source,
    registry,
    values: new KnownValues(),
  });
  const ca = SandboxAuthority.create('box', new Date());
  const roots = upstreamTls([company.certificatePem]);
  const proxy = await listenIntercepting(session, { ca, credentials, upstreamTls: roots });
  const phantom = credentials.env()['API_TOKEN'] ?? '';
  return { session, source, registry, credentials, ca, roots, proxy, phantom, seen };
}
type World = Awaited<ReturnType<typeof world>>;

/** One request through the gate, in bytes of the test's own, and the whole answer. */
async function send(
  { proxy, ca }: World,
  host: string,
  lines: readonly string[],
  body: string | Buffer = '',
): Promise<string> {
  const socket = await connectThrough(proxy, host);
  const [name = ''] = host.split(':');
  const secured = tls.connect({ socket, servername: name, ca: ca.certificatePem });
  secured.write(`${lines.join('\r\n')}\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
  secured.write(body);
  return await new Promise((resolve, reject) => {
    let all = '';
    secured.on('data', (chunk: Buffer) => {
      all += chunk.toString('latin1');
    });
    secured.on('end', () => resolve(all));
    secured.on('error', reject);
  });
}

const codeOf = (answer: string): string =>
  /"code":"([a-z_]+)"/.exec(answer)?.[1] ?? /^HTTP\/1\.1 (\d+)/.exec(answer)?.[1] ?? 'nothing';

describe('a phantom', () => {
  it('[R7] becomes the real value in its header, to its host, port and path, and in Basic', async () => {
    const all = await world();
    const { phantom, seen } = all;
    expect(phantom).toMatch(/^sk-test-/);
    const basic = (text: string): string => `Basic ${Buffer.from(text).toString('base64')}`;
    for (const line of [
      `Authorization: Bearer ${phantom}`,
      `X-Api-Key: ${phantom}`,
      `authorization: ${basic(`x-access-token:${phantom}`)}`,
    ]) {
      expect(codeOf(await send(all, 'api.test:443', ['GET /v1/x?a=b HTTP/1.1', line]))).toBe('200');
    }
    expect(seen.map(({ headers }) => headers['authorization'] ?? headers['x-api-key'])).toEqual([
      `Bearer ${real}`,
      real,
      basic(`x-access-token:${real}`),
    ]);
    expect(JSON.stringify(seen)).not.toContain(phantom);
    expect(seen.every(({ headers }) => headers['accept-encoding'] === 'identity')).toBe(true);
  });

  it('[R7] is stopped and told of wherever it does not belong, and the server sees nothing of it', async () => {
    const all = await world();
    const { phantom, seen, session } = all;
    const header = `Authorization: Bearer ${phantom}`;
    const post = (body: string | Buffer, ...fields: readonly string[]): [string[], string | Buffer] => [
      ['POST /v1/x HTTP/1.1', `Content-Length: ${body.length}`, ...fields],
      body,
    ];
    const chunks = `5\r\nab${phantom.slice(0, 3)}\r\n${(phantom.length - 3).toString(16)}\r\n${phantom.slice(3)}\r\n0\r\n\r\n`;
    const hidden = [...phantom].map((one) => `%${one.charCodeAt(0).toString(16)}`).join('');
    const rows: readonly (readonly [
      what: string,
      host: string,
      lines: readonly string[],
      body?: string | Buffer,
    ])[] = [
      ['another host', 'evil.test:443', ['GET /v1/x HTTP/1.1', header]],
      ['another port', 'api.test:8443', ['GET /v1/x HTTP/1.1', header]],
      ['another path', 'api.test:443', ['GET /v2/x HTTP/1.1', header]],
      ['a path that only begins the same', 'api.test:443', ['GET /v1x HTTP/1.1', header]],
      ['another header', 'api.test:443', ['GET /v1/x HTTP/1.1', `X-Other: ${phantom}`]],
      ['the query', 'api.test:443', [`GET /v1/x?key=${phantom} HTTP/1.1`]],
      ['the query, percent-encoded', 'api.test:443', [`GET /v1/x?key=${hidden} HTTP/1.1`]],
      [
        'the query, encoded twice',
        'api.test:443',
        [`GET /v1/x?key=${hidden.replaceAll('%', '%25')} HTTP/1.1`],
      ],
      ['a cookie', 'evil.test:443', ['GET / HTTP/1.1', `Cookie: a=${phantom}`]],
      [
        'Basic to another host',
        'evil.test:443',
        ['GET / HTTP/1.1', `Authorization: Basic ${Buffer.from(`a:${phantom}`).toString('base64')}`],
      ],
      ['the body', 'evil.test:443', ...post(`token=${phantom}`)],
      ['a packed body', 'evil.test:443', ...post(gzipSync(`token=${phantom}`), 'Content-Encoding: gzip')],
      [
        'a deflated body',
        'evil.test:443',
        ...post(deflateSync(`token=${phantom}`), 'Content-Encoding: deflate'),
      ],
      ['a body whose name lies', 'evil.test:443', ...post(`token=${phantom}`, 'Content-Encoding: gzip')],
      [
        'a body split over chunks',
        'evil.test:443',
        ['POST / HTTP/1.1', 'Transfer-Encoding: chunked'],
        chunks,
      ],
    ];
    for (const [what, host, lines, body] of rows) {
      const answer = await send(all, host, lines, body);
      expect([what, codeOf(answer)]).toEqual([what, 'phantom_misused']);
      expect(answer).toContain('the secret ci');
    }
    expect(JSON.stringify(seen)).not.toContain(phantom.slice(-20));
    expect(session.outcomes.filter(({ decision }) => decision.allowed)).toEqual([]);
    // What an agent tells its own service may quote the phantom.
    expect(codeOf(await send(all, 'api.test:443', ...post(`token=${phantom}`)))).toBe('200');
    // The same acts with something that only looks alike.
    const other = phantom.replace(/.{5}$/, 'AAAAA');
    expect(codeOf(await send(all, 'evil.test:443', ...post(`token=${other}`)))).toBe('200');
    expect(codeOf(await send(all, 'evil.test:443', ['GET /v1/x HTTP/1.1', `X-Other: ${other}`]))).toBe('200');
  });

  it('[R7] bound to a path does not leave it by a header, a parameter, or bytes that a server reads as dots', async () => {
    const all = await world();
    const header = `Authorization: Bearer ${all.phantom}`;
    for (const field of [
      'X-Original-URL: /v2/keys',
      'X_Rewrite_Url: /v2/keys',
      'X-HTTP-Method-Override: PUT',
    ]) {
      const answer = await send(all, 'api.test:443', ['GET /v1/x HTTP/1.1', header, field]);
      expect([field, codeOf(answer)]).toEqual([field, 'override_refused']);
    }
    for (const path of [
      '/v1/%c0%ae%c0%ae/v2',
      '/v1/..;/v2',
      '/v1;x/y',
      '/v1/%09../v2',
      '/v1/%ef%bc%8e./v2',
    ]) {
      const answer = await send(all, 'api.test:443', [`GET ${path} HTTP/1.1`, header]);
      expect([path, codeOf(answer)]).toEqual([path, 'ambiguous_path']);
    }
    expect(all.seen).toEqual([]);
    const forwarded = ['GET /v1/x HTTP/1.1', header, 'X-Forwarded-Prefix: /v2'];
    expect(codeOf(await send(all, 'api.test:443', forwarded))).toBe('200');
    expect(all.seen[0]?.headers).not.toHaveProperty('x-forwarded-prefix');
    // A secret that is not bound to a path says nothing about these.
    all.source.bindings.set('ci', { ...binding, path: undefined });
    const override = ['GET /v1/x;y HTTP/1.1', header, 'X-HTTP-Method-Override: PUT'];
    expect(codeOf(await send(all, 'api.test:443', override))).toBe('200');
  });

  it('[R7] does not travel without TLS, nor through the entrance of plain HTTP', async () => {
    const { session, credentials, phantom, source } = await world();
    source.bindings.set('ci', { ...binding, hosts: ['plain.test'], port: 80 });
    const port = await listenRelay(session, { entrance: 'http', scheme: 'http', credentials });
    const get = (extra: string): string =>
      `GET http://plain.test/v1 HTTP/1.1\r\nHost: plain.test\r\nConnection: close\r\n${extra}\r\n`;
    expect(codeOf(await talk(port, get(`Authorization: Bearer ${phantom}\r\n`)))).toBe('phantom_misused');
    expect(codeOf(await talk(port, get('')))).toBe('200');
  });

  it('[R7] leaves no way back for its value by plain HTTP, nor by TLS to another port of its host', async () => {
    const all = await world((_one, response) => response.end(`kept: ${real}`));
    const { session, credentials, source } = all;
    const masked = /kept: \*{10,}$/;
    expect(await send(all, 'api.test:8443', ['GET /v1 HTTP/1.1'])).toMatch(masked);
    // TLS is opened there: a tunnel could not be masked.
    expect(credentials.applies({ host: 'api.test', port: 8443, isAddress: false })).toBe(true);
    expect(credentials.applies({ host: 'evil.test', port: 8443, isAddress: false })).toBe(false);
    expect(await send(all, 'evil.test:8443', ['GET /v1 HTTP/1.1'])).toContain(`kept: ${real}`);

    const port = await listenRelay(session, { entrance: 'http', scheme: 'http', credentials });
    const get = 'GET http://plain.test/v1 HTTP/1.1\r\nHost: plain.test\r\nConnection: close\r\n\r\n';
    expect(await talk(port, get)).toContain(`kept: ${real}`);
    source.bindings.set('ci', { ...binding, hosts: ['plain.test'] });
    expect(await talk(port, get)).toMatch(masked);
  });

  it('[R7] of another sandbox is refused, and after that sandbox is gone it is just text', async () => {
    const all = await world();
    const other = new Credentials({
      sandbox: 'other',
      names: ['ci'],
      source: all.source,
      registry: all.registry,
      values: new KnownValues(),
    });
    const line = `Authorization: Bearer ${other.env()['API_TOKEN']}`;
    expect(codeOf(await send(all, 'api.test:443', ['GET /v1 HTTP/1.1', line]))).toBe('phantom_foreign');
    other.close();
    expect(codeOf(await send(all, 'api.test:443', ['GET /v1 HTTP/1.1', line]))).toBe('200');
    expect(all.seen[0]?.headers['authorization']).not.toContain(real);
  });

  it('[R7] stays the same for a daemon that starts again', async () => {
    const { credentials, source } = await world();
    const phantoms = credentials.phantoms();
    const again = new Credentials({
      sandbox: 'box',
      names: ['ci'],
      phantoms,
      source,
      registry: new PhantomRegistry(),
      values: new KnownValues(),
    });
    expect(again.env()).toEqual(credentials.env());
  });
});

describe('the real value', () => {
  const ask = (phantom: string): readonly string[] => [
    'GET /v1 HTTP/1.1',
    `Authorization: Bearer ${phantom}`,
  ];

  it('[R7] rotates at the next request; one that is removed or cannot be had is refused without its words', async () => {
    const all = await world();
    const { source, phantom, seen } = all;
    await send(all, 'api.test:443', ask(phantom));
    source.current = 'ROTATED-value-9876543210';
    await send(all, 'api.test:443', ask(phantom));
    expect(seen.map(({ headers }) => headers['authorization'])).toEqual([
      `Bearer ${real}`,
      'Bearer ROTATED-value-9876543210',
    ]);
    source.current = undefined;
    const failed = await send(all, 'api.test:443', ask(phantom));
    expect(codeOf(failed)).toBe('secret_missing');
    expect(failed).not.toContain(real);
    source.bindings.delete('ci');
    expect(codeOf(await send(all, 'api.test:443', ask(phantom)))).toBe('secret_missing');
    expect(seen).toHaveLength(2);
  });

  it('[R7] is masked where a server echoes it: headers, body, pieces, packed, and as Basic', async () => {
    let packed = false;
    const all = await world(({ headers }, response) => {
      const said = headers['authorization'] ?? '';
      const text = `you said ${said} and again ${said}.`;
      response.setHeader('x-echo', said);
      if (packed) {
        response.setHeader('content-encoding', 'gzip');
        response.end(gzipSync(text));
        return;
      }
      // Every byte in a chunk of its own.
      for (const byte of text) response.write(byte);
      response.end();
    });
    const { phantom } = all;
    const basic = Buffer.from(`u:${phantom}`).toString('base64');
    for (const line of [`Authorization: Bearer ${phantom}`, `Authorization: Basic ${basic}`]) {
      for (packed of [false, true]) {
        const answer = await send(all, 'api.test:443', ['GET /v1 HTTP/1.1', line]);
        const text = answer.replaceAll(/\r\n[0-9a-f]+\r\n/g, '');
        expect(codeOf(answer)).toBe('200');
        expect(text).toMatch(/\*{20}/);
        expect(text).toContain('and again');
        expect(text).not.toContain(real.slice(0, 12));
        expect(text).not.toContain(Buffer.from(`u:${real}`).toString('base64').slice(0, 16));
      }
    }
  });

  it('[R7] is held back no longer than it has to be: events pass one by one', async () => {
    const pending: (() => void)[] = [];
    const all = await world((_seen, response) => {
      response.write('data: R\n\n');
      pending.push(() => void response.end(`data: ${real}\n\n`));
    });
    const socket = await connectThrough(all.proxy, 'api.test:443');
    const secured = tls.connect({
      socket,
      servername: 'api.test',
      ca: all.ca.certificatePem,
      ALPNProtocols: ['h2'],
    });
    const client = http2.connect('https://api.test', { createConnection: () => secured });
    onTestFinished(() => client.destroy());
    const seen: string[] = [];
    for await (const chunk of client.request({ ':path': '/v1', authorization: `Bearer ${all.phantom}` })) {
      seen.push(String(chunk));
      // The second event exists only because the first one came through.
      if (seen.length === 1) for (const next of pending) next();
    }
    expect(seen.join('')).toBe(`data: R\n\ndata: ${'*'.repeat(real.length)}\n\n`);
  });

  it('[R7] follows no redirect: the next host gets no value, and the client is told', async () => {
    const all = await world((_seen, response) => {
      response.writeHead(302, { location: 'https://evil.test/v1' });
      response.end();
    });
    const first = await send(all, 'api.test:443', ask(all.phantom));
    expect(first).toContain('location: https://evil.test/v1');
    expect(codeOf(await send(all, 'evil.test:443', ask(all.phantom)))).toBe('phantom_misused');
    expect(all.seen).toHaveLength(1);
  });

  it('[R7] has a budget of requests', async () => {
    const all = await world();
    all.source.budgets.set('ci', 2);
    const codes: string[] = [];
    for (let index = 0; index < 3; index++)
      codes.push(codeOf(await send(all, 'api.test:443', ask(all.phantom))));
    expect(codes).toEqual(['200', '200', 'secret_budget_spent']);
    expect(codeOf(await send(all, 'api.test:443', ['GET /v1 HTTP/1.1']))).toBe('200');
  });

  it('[R7] is in nothing that the gate reports', async () => {
    const all = await world();
    await send(all, 'api.test:443', ask(all.phantom));
    await send(all, 'evil.test:443', ask(all.phantom));
    expect(all.session.outcomes).toHaveLength(2);
    expect(JSON.stringify(all.session.outcomes)).not.toContain(real);
  });
});

describe('a base URL', () => {
  it('[R7] serves one service over plain HTTP inside, and nothing else', async () => {
    const all = await world();
    const { session, credentials, roots, phantom, seen } = all;
    const [service] = credentials.baseUrls();
    expect(service).toMatchObject({ env: 'API_BASE_URL', path: '/v1' });
    const port = await listenRelay(session, {
      entrance: 'base-url',
      scheme: 'http',
      ...(service === undefined ? {} : { baseUrl: service.destination }),
      credentials,
      upstreamTls: roots,
    });
    expect(credentials.env({ ci: port })).toEqual({
      API_TOKEN: phantom,
      API_BASE_URL: `http://127.0.0.1:${port}/v1`,
    });
    const get = (path: string, host: string): string =>
      `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\nAuthorization: Bearer ${phantom}\r\n\r\n`;
    expect(codeOf(await talk(port, get('/v1/messages', `127.0.0.1:${port}`)))).toBe('200');
    expect(codeOf(await talk(port, get('/v1/messages', `localhost:${port}`)))).toBe('200');
    expect(seen.map(({ url, headers }) => [url, headers.host, headers['authorization']])).toEqual([
      ['/v1/messages', 'api.test', `Bearer ${real}`],
      ['/v1/messages', 'api.test', `Bearer ${real}`],
    ]);
    expect(codeOf(await talk(port, get('/v1/messages', 'evil.test')))).toBe('host_mismatch');
    expect(codeOf(await talk(port, get('http://evil.test/', `127.0.0.1:${port}`)))).toBe('target_refused');
    expect(codeOf(await talk(port, get('/other', `127.0.0.1:${port}`)))).toBe('phantom_misused');
    expect(codeOf(await talk(port, get('/v1/../other', `127.0.0.1:${port}`)))).toBe('ambiguous_path');
    expect(seen).toHaveLength(2);
  });
});
