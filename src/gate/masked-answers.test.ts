/** Every way by which a server that knows a secret could return it to a sandbox, through the gate as programs have it. */

import { once } from 'node:events';
import http2 from 'node:http2';
import tls from 'node:tls';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  connectThrough,
  LoopbackSession,
  listen,
  listenIntercepting,
} from '../../test/support/loopback-gate.ts';
import type { SecretBinding } from '../protocol/secrets.ts';
import { KnownValues } from './credentials/known-values.ts';
import { PhantomRegistry } from './credentials/phantoms.ts';
import { Credentials, type SecretSource } from './credentials.ts';
import { acceptFor } from './http/web-socket-key.ts';
import { SandboxAuthority } from './tls/sandbox-authority.ts';
import { upstreamTls } from './tls/system-roots.ts';

const real = 'REAL-value-of-the-secret-0123456789';
const other = 'OTHER-value-of-a-secret-9876543210';
const stars = '*'.repeat(real.length);
const bound: SecretBinding = {
  hosts: ['api.test'],
  port: 443,
  headers: ['authorization'],
  env: ['API_TOKEN'],
  prefix: 'sk-',
};

type Serve = (head: string, socket: tls.TLSSocket) => void;

/** A server in bytes of the test's own, to whose host two secrets are bound, beside one that has none. */
async function world(serve: Serve) {
  const company = SandboxAuthority.create('a company', new Date());
  const heads: string[] = [];
  const server = (name: string): tls.Server =>
    tls.createServer(company.leafFiles(name), (socket) => {
      let text = '';
      socket.on('error', () => {});
      socket.on('data', (chunk: Buffer) => {
        text += chunk.toString('latin1');
        for (let end = text.indexOf('\r\n\r\n'); end >= 0; end = text.indexOf('\r\n\r\n')) {
          const head = text.slice(0, end + 4);
          text = text.slice(end + 4);
          heads.push(head);
          serve(head, socket);
        }
      });
    });
  const session = new LoopbackSession({
    ports: { 'api.test': await listen(server('api.test')), 'free.test': await listen(server('free.test')) },
    inspects: true,
  });
  const values = new Map([
    ['ci', real],
    ['other', other],
  ]);
  const hosts = new Map<string, string>();
  const binding = (name: string): SecretBinding | undefined =>
    values.has(name)
      ? { ...bound, hosts: [hosts.get(name) ?? 'api.test'], env: [`${name.toUpperCase()}_TOKEN`] }
      : undefined;
  const source: SecretSource = {
    binding,
    budget: () => undefined,
    boundTo: (host) =>
      [...values.keys()]
        .filter((name) => binding(name)?.hosts.includes(host))
        .map((name) => ({ name, port: 443, value: undefined })),
    value: async (name) => {
      const value = values.get(name);
      if (value === undefined || value === '') throw new Error('locked');
      return value;
    },
  };
  const registry = new PhantomRegistry();
  const known = new KnownValues();
  const sandbox = async (name: string, names: readonly string[]) => {
    const credentials = new Credentials({ sandbox: name, names, source, registry, values: known });
    const ca = SandboxAuthority.create(name, new Date());
    const proxy = await listenIntercepting(session, {
      ca,
      credentials,
      upstreamTls: upstreamTls([company.certificatePem]),
    });
    return { proxy, ca, credentials, phantom: credentials.env()['CI_TOKEN'] ?? '' };
  };
  return { ...(await sandbox('box', ['ci', 'other'])), sandbox, heads, values, hosts };
}
type World = Awaited<ReturnType<typeof world>>;
type Sandbox = Pick<World, 'proxy' | 'ca'>;

async function open({ proxy, ca }: Sandbox, host: string, protocol?: string): Promise<tls.TLSSocket> {
  const socket = await connectThrough(proxy, `${host}:443`);
  const ALPNProtocols = protocol === undefined ? [] : [protocol];
  const secured = tls.connect({ socket, servername: host, ca: ca.certificatePem, ALPNProtocols });
  onTestFinished(() => void secured.destroy());
  secured.on('error', () => {});
  await once(secured, 'secureConnect');
  return secured;
}

/** The whole answer, until the connection ends or it has `enough`. */
async function ask(
  all: Sandbox,
  lines: readonly string[],
  { host = 'api.test', enough = (_text: string): boolean => false } = {},
): Promise<string> {
  const socket = await open(all, host);
  socket.write(`GET /v1 HTTP/1.1\r\nHost: ${host}\r\n${lines.map((line) => `${line}\r\n`).join('')}\r\n`);
  let text = '';
  for await (const chunk of socket as AsyncIterable<Buffer>) {
    text += chunk.toString('latin1');
    if (enough(text)) break;
  }
  return text;
}

const close = 'Connection: close';
const plain = (body: string, more = ''): string =>
  `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n${more}\r\n${body}`;

const frame = (first: number, payload: string): Buffer =>
  Buffer.concat([Buffer.from([first, payload.length]), Buffer.from(payload, 'latin1')]);
const key = 'dGhlIHNhbXBsZSBub25jZQ==';
const upgrade = [
  'Connection: Upgrade',
  'Upgrade: websocket',
  `Sec-WebSocket-Key: ${key}`,
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Extensions: permessage-deflate',
];
const agreed = `HTTP/1.1 101 Switching ${real}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: ${acceptFor(key)}\r\nX-Own: ${real}\r\n`;

describe('a server that knows a secret', () => {
  it('[R7] cannot return it in the answer to a request without the phantom, nor that of another secret', async () => {
    const all = await world((_head, socket) => socket.write(plain(`kept: ${real} ${other}`)));
    const answer = await ask(all, [close]);
    expect(answer).toMatch(/kept: \*+ \*+$/);
    expect(answer).not.toContain('value');
    // The same server by another name has no secret: nothing is changed.
    expect(await ask(all, [close], { host: 'free.test' })).toContain(`kept: ${real} ${other}`);
  });

  it('[R7] cannot return one that was rotated; while a value cannot be had, nothing is asked of its host', async () => {
    const all = await world((_head, socket) => socket.write(plain(`kept: ${real}`)));
    await ask(all, [close, `Authorization: Bearer ${all.phantom}`]);
    all.values.set('ci', 'ROTATED-value-of-it-555555');
    expect(await ask(all, [close])).toContain(`kept: ${stars}`);
    all.values.set('ci', '');
    expect(await ask(all, [close])).toContain('secret_missing');
    expect(all.heads).toHaveLength(2);
  });

  const rotated = 'ROTATED-value-of-it-0000-55555555555'.slice(0, real.length);

  it('[R7] cannot return any of 20 values before a rotation, nor one of which the secret was removed or bound elsewhere', async () => {
    let sent = '';
    const all = await world((_head, socket) => socket.write(plain(`kept: ${sent}`)));
    const many = Array.from({ length: 20 }, (_, at) => `ROTATED-value-number-${at}-${at}-${at}`);
    for (const value of [real, ...many]) {
      all.values.set('ci', value);
      await ask(all, [close, `Authorization: Bearer ${all.phantom}`]);
    }
    const check = async (): Promise<void> => {
      for (sent of [real, ...many]) expect(await ask(all, [close])).toMatch(/kept: \*+$/);
    };
    await check();
    all.hosts.set('ci', 'free.test');
    await check();
    const destination = { host: 'api.test', port: 443, isAddress: false };
    all.values.delete('other');
    all.values.delete('ci');
    await check();
    // What is not opened is not masked, so it stays open.
    expect(all.credentials.applies(destination)).toBe(true);
    expect(all.credentials.applies({ ...destination, host: 'free.test' })).toBe(false);
  });

  it('[R7] cannot return it to a sandbox that has no secret, once another one sent it', async () => {
    const all = await world((_head, socket) => socket.write(plain(`kept: ${real}`)));
    const second = await all.sandbox('second', []);
    await ask(all, [close, `Authorization: Bearer ${all.phantom}`]);
    expect(await ask(second, [close])).toContain(`kept: ${stars}`);
    expect(await ask(second, [close], { host: 'free.test' })).toContain(`kept: ${real}`);
    // Its connections are not opened for that.
    expect(second.credentials.applies({ host: 'api.test', port: 443, isAddress: false })).toBe(false);
  });

  it('[R7] cannot return the value that was put in, where a command prints another one each time', async () => {
    const all = await world((head, socket) => socket.write(plain(/Bearer (\S+)/.exec(head)?.[1] ?? '')));
    const values = all.values;
    let count = 0;
    values.get = () => `each-time-another-value-${count++}`;
    const answer = await ask(all, [close, `Authorization: Bearer ${all.phantom}`]);
    expect(all.heads[0]).toContain('each-time-another-value-');
    expect(answer).toMatch(/\r\n\r\n\*+$/);
  });

  it.each(['box', 'second'])(
    '[R7] cannot return a new value on a stream that sandbox %s opened before the rotation',
    async (name) => {
      const streams: tls.TLSSocket[] = [];
      const all = await world((head, socket) => {
        if (head.startsWith('GET /v1') && !head.includes('Bearer')) {
          streams.push(socket);
          socket.write(
            head.includes('websocket')
              ? `${agreed}\r\n`
              : 'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n',
          );
          return;
        }
        const value = /Bearer (\S+)/.exec(head)?.[1] ?? '';
        const [events, socketFrames] = streams;
        events?.end(`data: now ${value}\n\n`);
        socketFrames?.end(frame(0x81, `now ${value}`));
        socket.write(plain('fine'));
      });
      const own = name === 'box' ? all : await all.sandbox(name, []);
      const begun = (text: string): boolean => text.includes('\r\n\r\n');
      const until = async (socket: tls.TLSSocket): Promise<string> => {
        let text = '';
        while (!begun(text)) text += String((await once(socket, 'data'))[0]);
        return text;
      };
      const events = await open(own, 'api.test');
      events.write(`GET /v1 HTTP/1.1\r\nHost: api.test\r\n${close}\r\n\r\n`);
      const texts = [await until(events)];
      const frames = await open(own, 'api.test');
      frames.write(`GET /v1 HTTP/1.1\r\nHost: api.test\r\n${upgrade.join('\r\n')}\r\n\r\n`);
      texts.push(await until(frames));
      const rest = [events, frames].map(async (socket, at) => {
        for await (const chunk of socket as AsyncIterable<Buffer>) texts[at] += chunk.toString('latin1');
      });
      all.values.set('ci', rotated);
      await ask(all, [close, `Authorization: Bearer ${all.phantom}`]);
      await Promise.all(rest);
      expect(all.heads.at(-1)).toContain(`Bearer ${rotated}\r\n`);
      for (const text of texts) expect(text).toContain(`now ${stars}`);
    },
  );

  it('[R7] cannot return it in interim answers, the reason, names of headers, trailers or chunk extensions', async () => {
    const all = await world((_head, socket) => {
      socket.write(`HTTP/1.1 103 Early ${real}\r\nLink: <${real}>\r\nX-${real}: 1\r\n\r\n`);
      socket.write(`HTTP/1.1 200 Fine ${real}\r\nX-${real}: 1\r\nX-Own: ${real}\r\nX-Kept: yes\r\n`);
      socket.write('Transfer-Encoding: chunked\r\nTrailer: X-Late\r\n\r\n');
      socket.write(`4;note=${real}\r\nbody\r\n0;note=${real}\r\nX-Late: ${real}\r\n\r\n`);
    });
    const answer = await ask(all, [close]);
    expect(answer).toContain(`HTTP/1.1 103 Early ${stars}\r\nLink: <${stars}>\r\nX-${stars}: 1\r\n`);
    expect(answer).toContain(`HTTP/1.1 200 Fine ${stars}\r\nX-${stars}: 1\r\nX-Own: ${stars}\r\nX-Kept: yes`);
    expect(answer).toContain('body');
    expect(answer).not.toMatch(/value-of|note=/);
    expect(await ask(all, [close], { host: 'free.test' })).toContain(`HTTP/1.1 103 Early ${real}`);
  });

  it('[R7] cannot return it by HTTP/2: headers, interim answers and the body', async () => {
    const all = await world((_head, socket) => {
      socket.write(`HTTP/1.1 103 Early\r\nLink: <${real}>\r\n\r\n`);
      socket.write(
        `HTTP/1.1 200 OK\r\nX-${real}: ${real}\r\nTransfer-Encoding: chunked\r\n\r\n23\r\n${real}\r\n0\r\nX-Late: ${real}\r\n\r\n`,
      );
    });
    const secured = await open(all, 'api.test', 'h2');
    const client = http2.connect('https://api.test', { createConnection: () => secured });
    onTestFinished(() => client.destroy());
    const seen: unknown[] = [];
    const request = client.request({ ':path': '/v1' });
    for (const event of ['headers', 'response', 'trailers', 'push'] as const)
      request.on(event, (headers: unknown) => seen.push([event, headers]));
    for await (const chunk of request) seen.push(String(chunk));
    expect(JSON.stringify(seen)).toContain(`"x-${stars}":"${stars}"`);
    expect(JSON.stringify(seen)).toContain(`"link":"<${stars}>"`);
    expect(seen).toContain(stars);
    expect(JSON.stringify(seen).toLowerCase()).not.toMatch(/value-of|trailers|push/);
  });

  it('[R7] is not asked for a part of a document, nor for a form that cannot be searched; one that comes is refused', async () => {
    let answer = plain(real);
    const all = await world((_head, socket) => socket.write(answer));
    const unwanted = ['Range: bytes=0-9', 'If-Range: "x"', 'Accept-Encoding: zstd, gzip', 'A-IM: vcdiff'];
    const fields = [close, ...unwanted, 'Accept-Charset: utf-16', 'X-Kept: 1'];
    expect(await ask(all, fields)).toContain(stars);
    expect(all.heads[0]).toMatch(/Accept-Encoding: identity\r\n/);
    expect(all.heads[0]).toContain('X-Kept: 1');
    expect(all.heads[0]).not.toMatch(/range|zstd|a-im|charset/i);
    await ask(all, fields, { host: 'free.test' });
    expect(all.heads[1]).toMatch(/Range: bytes=0-9[\s\S]*zstd, gzip[\s\S]*utf-16/);
    for (answer of [
      `HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-9/35\r\nContent-Length: 10\r\n\r\n${real.slice(0, 10)}`,
      plain('packed', 'Content-Encoding: zstd\r\n'),
      plain('R\0E\0A\0', 'Content-Type: text/plain; charset=UTF-16LE\r\n'),
      plain('R\0E\0A\0', 'Content-Type: text/plain; charset=unicode\r\n'),
      plain('R\0E\0A\0', 'Content-Type: text/plain; charset=csUTF16\r\n'),
      plain('R\0E\0A\0', 'Content-Type: text/plain\r\nContent-Type: text/plain; charset=utf-16\r\n'),
    ]) {
      const refused = await ask(all, [close]);
      expect(refused).toMatch(/^HTTP\/1\.1 502/);
      expect(refused).toContain('"bad_response"');
      expect(await ask(all, [close], { host: 'free.test' })).toMatch(/^HTTP\/1\.1 20/);
    }
  });

  it('[R7] cannot return it by a WebSocket: its 101, messages whole and in fragments, control frames', async () => {
    const all = await world((_head, socket) => {
      socket.write(`${agreed}\r\n`);
      const text = frame(0x81, `one ${real}`);
      // Every byte by itself.
      for (const byte of text) socket.write(Buffer.from([byte]));
      socket.write(frame(0x01, real.slice(0, 9)));
      socket.write(frame(0x89, `ping ${real}`));
      socket.write(frame(0x80, real.slice(9)));
      const large = Buffer.from(`${'x'.repeat(70_000)}${real}`);
      const head = Buffer.from([0x82, 127, 0, 0, 0, 0, 0, 0, 0, 0]);
      head.writeUInt32BE(large.length, 6);
      socket.write(Buffer.concat([head, large, frame(0x88, `\u0003\u00e8${real}`)]));
      socket.end();
    });
    const answer = await ask(all, upgrade);
    expect(answer).toMatch(/^HTTP\/1\.1 101 Switching \*+\r\n/);
    expect(all.heads[0]).not.toContain('permessage-deflate');
    expect(answer.includes('value-of')).toBe(false);
    const whole = frame(0x81, `one ${stars}`).toString('latin1');
    const ping = frame(0x89, `ping ${stars}`).toString('latin1');
    expect(answer.includes(`${whole}${ping}${frame(0x81, stars).toString('latin1')}`)).toBe(true);
    expect(answer.includes(`${'x'.repeat(70_000)}${stars}`)).toBe(true);
    const free = await ask(all, upgrade, { host: 'free.test' });
    expect(free.includes(`one ${real}`)).toBe(true);
  });

  it.each([
    ['an extension nobody asked for', `${agreed}Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n`, ''],
    ['a compressed frame', `${agreed}\r\n`, Buffer.from([0xc1, 3, 65, 66, 67])],
    ['a masked frame', `${agreed}\r\n`, Buffer.from([0x81, 0x83, 1, 2, 3, 4, 65, 66, 67])],
    ['a frame of unknown kind', `${agreed}\r\n`, Buffer.from([0x83, 3, 65, 66, 67])],
    ['a frame of 17 MiB', `${agreed}\r\n`, Buffer.from([0x82, 127, 0, 0, 0, 0, 1, 0x10, 0, 0, 65, 66, 67])],
  ])('[R7] cannot return it by a WebSocket with %s: the connection ends', async (_what, head, bytes) => {
    const all = await world((_head, socket) => {
      socket.write(head);
      socket.write(bytes);
    });
    const answer = await ask(all, upgrade, { enough: (text) => text.includes('"bad_response"') });
    expect(answer).not.toMatch(/ABC$/);
    expect(answer).not.toContain('value-of');
  });

  it('[R7] gets a value as it is, also one with $$ and $& in it', async () => {
    const all = await world((_head, socket) => socket.write(plain('fine')));
    const odd = "a$$b$&c$'d$`e$1f";
    all.values.set('ci', odd);
    await ask(all, [close, `Authorization: Bearer ${all.phantom}`]);
    const basic = Buffer.from(`user:${all.phantom}`).toString('base64');
    await ask(all, [close, `Authorization: Basic ${basic}`]);
    expect(all.heads[0]).toContain(`Authorization: Bearer ${odd}\r\n`);
    expect(all.heads[1]).toContain(
      `Authorization: Basic ${Buffer.from(`user:${odd}`).toString('base64')}\r\n`,
    );
  });

  it('[R7] gets no value of fewer than 8 characters, which could not be masked', async () => {
    const all = await world((_head, socket) => socket.write(plain('fine')));
    all.values.set('ci', 'seven77');
    const refused = await ask(all, [close, `Authorization: Bearer ${all.phantom}`]);
    expect(refused).toContain('"secret_too_short"');
    expect(refused).toContain('sally secret set ci');
    expect(refused).not.toContain('seven77');
    all.values.set('ci', 'eight888');
    expect(await ask(all, [close, `Authorization: Bearer ${all.phantom}`])).toContain('fine');
  });
});

describe('a stream that is masked', () => {
  const chunk = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`;
  const streaming = (type: string): string =>
    `HTTP/1.1 200 OK\r\nContent-Type: ${type}\r\nTransfer-Encoding: chunked\r\n\r\n`;

  it('[R7] carries an exchange of MCP over SSE: each side waits for the other', async () => {
    let stream: tls.TLSSocket | undefined;
    const all = await world((head, socket) => {
      if (head.startsWith('GET')) {
        stream = socket;
        socket.write(streaming('text/event-stream'));
        socket.write(chunk('event: endpoint\ndata: /messages?session=1\n\n'));
        return;
      }
      const id = /\/messages\?session=1&id=(\d+)/.exec(head)?.[1];
      const result = `{"jsonrpc":"2.0","id":${id},"result":{"text":"you are ${real}"}}`;
      // The answer to the call comes by the stream, in two writes.
      stream?.write(chunk(`event: message\nda`));
      stream?.write(chunk(`ta: ${result}\n\n`));
      socket.write('HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n');
    });
    const events = await open(all, 'api.test');
    let seen = '';
    const waitFor = async (mark: string): Promise<void> => {
      while (!seen.includes(mark)) seen += String((await once(events, 'data'))[0]);
    };
    events.write(`GET /sse HTTP/1.1\r\nHost: api.test\r\nAuthorization: Bearer ${all.phantom}\r\n\r\n`);
    await waitFor('/messages?session=1\n\n');
    const calls = await open(all, 'api.test');
    for (const id of [1, 2, 3]) {
      calls.write(
        `POST /messages?session=1&id=${id} HTTP/1.1\r\nHost: api.test\r\nContent-Length: 0\r\n\r\n`,
      );
      await waitFor(`"id":${id},"result":{"text":"you are ${stars}"}}\n\n`);
    }
  });

  const untilClose = (type: string): string => `HTTP/1.1 200 OK\r\nContent-Type: ${type}\r\n\r\n`;

  /**
   * Time from writing a token to reading it, of the quickest of `tries`; on a busy machine of more, until one is within `enoughMs`.
   */
  async function quickest(
    all: World,
    host: string,
    write: (index: number) => string,
    { tries = 12, mostTries = 300, enoughMs }: { tries?: number; mostTries?: number; enoughMs: number },
  ): Promise<number> {
    const reading = await open(all, host);
    reading.write(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
    let text = '';
    reading.on('data', (bytes: Buffer) => {
      text += bytes.toString('latin1');
    });
    while (!text.includes('\r\n\r\n')) await once(reading, 'data');
    const times: number[] = [];
    for (let index = 1; index <= tries || (index <= mostTries && Math.min(...times) > enoughMs); index++) {
      const from = performance.now();
      const token = write(index);
      while (!text.includes(token)) await once(reading, 'data');
      times.push(performance.now() - from);
    }
    return Math.min(...times);
  }

  const events = (index: number): string => `data: token ${index}\n\n`;
  const lines = (index: number): string => `{"token":${index}}\n`;
  const words = (index: number): string => `token ${index} `;
  const asIs = (text: string): string => text;

  it.each([
    ['text/event-stream in chunks', streaming('text/event-stream'), events, chunk],
    ['application/x-ndjson in chunks', streaming('application/x-ndjson'), lines, chunk],
    ['text/plain in chunks', streaming('text/plain'), words, chunk],
    ['text/event-stream until the connection closes', untilClose('text/event-stream'), events, asIs],
    ['application/x-ndjson until the connection closes', untilClose('application/x-ndjson'), lines, asIs],
  ])(
    '[R7] of %s gives each token at most 25 ms later than one that is not masked',
    async (_what, head, token, framed) => {
      let stream: tls.TLSSocket | undefined;
      const all = await world((_head, socket) => {
        stream = socket;
        socket.write(head);
      });
      const write = (index: number): string => {
        stream?.write(framed(token(index)));
        return token(index);
      };
      const unmasked = await quickest(all, 'free.test', write, { enoughMs: 5 });
      const masked = await quickest(all, 'api.test', write, { enoughMs: unmasked + 25 });
      expect(masked - unmasked).toBeLessThanOrEqual(25);
      // Positive control of the measurement: without an end of line there is a pause to wait for.
      if (token === words) expect(masked).toBeGreaterThan(15);
    },
  );

  it.each([
    ['until the connection closes', untilClose('text/plain')],
    ['of a known length', 'HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 100000\r\n\r\n'],
  ])('[R7] of plain text %s gives a token after a pause of 1 s, long before its end', async (_what, head) => {
    let stream: tls.TLSSocket | undefined;
    const all = await world((_head, socket) => {
      stream = socket;
      socket.write(head);
    });
    const write = (index: number): string => {
      stream?.write(words(index));
      return words(index);
    };
    const unmasked = await quickest(all, 'free.test', write, { tries: 1, enoughMs: 20 });
    const masked = await quickest(all, 'api.test', write, {
      tries: 1,
      mostTries: 8,
      enoughMs: unmasked + 1025,
    });
    expect(masked - unmasked).toBeLessThanOrEqual(1025);
    expect(masked).toBeGreaterThan(900);
  });

  it('[R7] does not let a value go where a network splits a long answer between its small chunks', async () => {
    const half = real.slice(0, 20);
    const before = chunk('x'.repeat(1000)).repeat(12);
    let finish = (): void => {};
    const all = await world((_head, socket) => {
      socket.write(streaming('text/plain') + before + chunk(half));
      finish = () => void socket.end(`${chunk(real.slice(20))}0\r\n\r\n`);
    });
    const text = await ask(all, [close], {
      enough: (so) => {
        // Ten times the short pause after all that may go out of it came; the delay is what is tested.
        if (so.includes('x') && so.length > 10_000) {
          setTimeout(finish, 200);
          finish = () => {};
        }
        return false;
      },
    });
    expect(text.replaceAll(/\r\n[0-9a-f]+\r\n/g, '')).toContain(stars);
    expect(text).not.toContain('REAL');
  });

  it('[R7] does not let a value go where a network splits it: within a chunk or a known length only a long pause counts', async () => {
    const half = real.slice(0, 20);
    for (const [head, first, rest] of [
      [streaming('text/plain'), `23\r\n${half}`, `${real.slice(20)}\r\n0\r\n\r\n`],
      [`HTTP/1.1 200 OK\r\nContent-Length: ${real.length}\r\n\r\n`, half, real.slice(20)],
    ] as const) {
      let finish = (): void => {};
      const all = await world((_head, socket) => {
        socket.write(head);
        socket.write(first);
        finish = () => void socket.end(rest);
      });
      const answer = ask(all, [close], {
        enough: (text) => {
          // Ten times the short pause after the head came; the delay is what is tested.
          if (text.endsWith('\r\n\r\n')) setTimeout(finish, 200);
          return false;
        },
      });
      const text = await answer;
      expect(text).toContain(stars);
      expect(text).not.toContain('REAL');
    }
  });
});
