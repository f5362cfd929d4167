import http from 'node:http';
import net from 'node:net';
import { describe, expect, it } from 'vitest';
import { LoopbackSession, listen, listenRelay, talk } from '../../../test/support/loopback-gate.ts';
import type { Destination } from '../contract.ts';
import { acceptFor } from './web-socket-key.ts';

const target: Destination = { host: 'allowed.test', port: 80, isAddress: false };

/** A real server that says what it was asked, behind the name `allowed.test`. */
async function world(handler: http.RequestListener = echo) {
  const server = http.createServer(handler);
  const port = await listen(server);
  const session = new LoopbackSession({ ports: { 'allowed.test': port }, inspects: true });
  const proxy = await listenRelay(session, { entrance: 'http', scheme: 'http' });
  const fixed = await listenRelay(session, { entrance: 'transparent', scheme: 'http', authority: target });
  return { server, session, proxy, fixed };
}

const echo: http.RequestListener = (request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    const { method, url, headers } = request;
    response.end(JSON.stringify({ method, url, headers, body: Buffer.concat(chunks).toString('latin1') }));
  });
};

const get = (path = 'http://allowed.test/x', extra = ''): string =>
  `GET ${path} HTTP/1.1\r\nHost: allowed.test\r\nConnection: close\r\n${extra}\r\n`;
const post = (fields: string, body: string): string =>
  `POST http://allowed.test/x HTTP/1.1\r\nHost: allowed.test\r\nConnection: close\r\n${fields}\r\n${body}`;

const statusOf = (text: string): number => Number(/^HTTP\/1\.1 (\d\d\d)/.exec(text)?.[1]);
const codeOf = (text: string): string => {
  const parsed: unknown = JSON.parse(/\{.*\}/s.exec(text)?.[0] ?? '{}');
  return (parsed as { error?: { code?: string } }).error?.code ?? 'none';
};

describe('requests that two parsers could read in two ways', () => {
  const line = 'GET http://allowed.test/ HTTP/1.1\r\n';
  const refused: readonly (readonly [what: string, bytes: string, status: number, code: string])[] = [
    ['no Host', `${line}\r\n`, 400, 'host_missing'],
    ['two Hosts', `${line}Host: allowed.test\r\nHost: allowed.test\r\n\r\n`, 400, 'host_repeated'],
    ['two different Hosts', `${line}Host: allowed.test\r\nHost: evil.test\r\n\r\n`, 400, 'host_repeated'],
    ['another Host than the URL', `${line}Host: evil.test\r\n\r\n`, 403, 'host_mismatch'],
    ['another port in Host', `${line}Host: allowed.test:81\r\n\r\n`, 403, 'host_mismatch'],
    ['user-info in Host', `${line}Host: allowed.test@evil.test\r\n\r\n`, 400, 'host_invalid'],
    ['a list in Host', `${line}Host: allowed.test, evil.test\r\n\r\n`, 400, 'host_invalid'],
    [
      'CL with TE',
      post('Content-Length: 5\r\nTransfer-Encoding: chunked\r\n', '0\r\n\r\n'),
      400,
      'framing_ambiguous',
    ],
    ['two CLs', post('Content-Length: 1\r\nContent-Length: 2\r\n', 'ab'), 400, 'framing_ambiguous'],
    ['two equal CLs', post('Content-Length: 1\r\nContent-Length: 1\r\n', 'a'), 400, 'framing_ambiguous'],
    ['a list of CLs', post('Content-Length: 1, 1\r\n', 'a'), 400, 'framing_ambiguous'],
    ['a CL with a sign', post('Content-Length: +1\r\n', 'a'), 400, 'framing_ambiguous'],
    ['a hexadecimal CL', post('Content-Length: 0x1\r\n', 'a'), 400, 'framing_ambiguous'],
    ['another coding', post('Transfer-Encoding: gzip, chunked\r\n', '0\r\n\r\n'), 400, 'framing_ambiguous'],
    ['a quoted coding', post('Transfer-Encoding: "chunked"\r\n', '0\r\n\r\n'), 400, 'framing_ambiguous'],
    [
      'two codings',
      post('Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n', '0\r\n\r\n'),
      400,
      'framing_ambiguous',
    ],
    ['bare LF', 'GET http://allowed.test/ HTTP/1.1\nHost: allowed.test\n\n', 400, 'bad_request'],
    ['bare LF after one field', `${line}Host: allowed.test\nX: y\r\n\r\n`, 400, 'bad_request'],
    ['bare CR', `${line}Host: allowed.test\r\nX: a\rb\r\n\r\n`, 400, 'bad_request'],
    ['obs-fold', `${line}Host: allowed.test\r\nX: a\r\n b\r\n\r\n`, 400, 'bad_request'],
    ['a space before the colon', `${line}Host: allowed.test\r\nX : a\r\n\r\n`, 400, 'bad_request'],
    ['a field without a name', `${line}Host: allowed.test\r\n: a\r\n\r\n`, 400, 'bad_request'],
    ['a field without a colon', `${line}Host: allowed.test\r\nabc\r\n\r\n`, 400, 'bad_request'],
    ['NUL in a value', `${line}Host: allowed.test\r\nX: a\0b\r\n\r\n`, 400, 'bad_request'],
    ['an empty line first', `\r\n${get()}`, 400, 'bad_request'],
    [
      'two spaces in the request line',
      `GET  http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n`,
      400,
      'bad_request',
    ],
    [
      'a tab in the request line',
      `GET\thttp://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n`,
      400,
      'bad_request',
    ],
    ['HTTP/0.9', 'GET http://allowed.test/\r\n\r\n', 400, 'bad_request'],
    ['HTTP/2 in text', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400, 'bad_request'],
    ['https in absolute form', get('https://allowed.test/'), 403, 'target_refused'],
    ['ftp in absolute form', get('ftp://allowed.test/'), 403, 'target_refused'],
    ['a path alone, to a proxy', get('/x'), 403, 'target_refused'],
    ['a fragment', get('http://allowed.test/x#y'), 403, 'target_refused'],
    ['user-info in the URL', get('http://allowed.test@evil.test/'), 400, 'host_invalid'],
    ['h2c', get(undefined, 'Upgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n'), 403, 'upgrade_refused'],
    ['h2c beside websocket', get(undefined, 'Upgrade: websocket, h2c\r\n'), 403, 'upgrade_refused'],
    ['another protocol', get(undefined, 'Upgrade: TLS/1.0\r\n'), 403, 'upgrade_refused'],
    ['Connection: Host', `${line}Host: allowed.test\r\nConnection: Host\r\n\r\n`, 400, 'bad_request'],
    ['a path that climbs', get('http://allowed.test/a/../b'), 403, 'ambiguous_path'],
    ['a path that climbs, encoded', get('http://allowed.test/a/%2e%2E/b'), 403, 'ambiguous_path'],
    ['an encoded slash', get('http://allowed.test/a%2fb'), 403, 'ambiguous_path'],
    ['two slashes', get('http://allowed.test//a'), 403, 'ambiguous_path'],
    ['a path parameter that climbs', get('http://allowed.test/a/..;/b'), 403, 'ambiguous_path'],
    ['a backslash', get('http://allowed.test/a\\..\\b'), 403, 'ambiguous_path'],
    ['twice encoded', get('http://allowed.test/a/%252e%252e/b'), 403, 'ambiguous_path'],
    ['too long a line', get(`http://allowed.test/${'a'.repeat(20_000)}`), 431, 'head_too_large'],
    ['too many fields', get(undefined, 'X: y\r\n'.repeat(200)), 431, 'head_too_large'],
    ['too large a head', get(undefined, `X: ${'y'.repeat(15_000)}\r\n`.repeat(5)), 431, 'head_too_large'],
  ];

  it('are refused in JSON and reach nobody; the same request written plainly does', async () => {
    const { session, proxy } = await world();
    for (const [what, bytes, status, code] of refused) {
      const answer = await talk(proxy, bytes);
      expect([what, statusOf(answer), codeOf(answer)]).toEqual([what, status, code]);
    }
    expect(session.dialled).toEqual([]);
    expect(statusOf(await talk(proxy, get()))).toBe(200);
    expect(statusOf(await talk(proxy, get('http://allowed.test/a.b/..c/d;e=1/?x=/../&y=%2f')))).toBe(200);
    expect(session.dialled).toHaveLength(2);
  });

  it('chunked bodies: what is malformed cuts the request, what is well-formed arrives framed anew', async () => {
    const { proxy } = await world();
    const chunked = (body: string): string => post('Transfer-Encoding: chunked\r\n', body);
    for (const body of [
      'x\r\n',
      '5;a=b\r\nhello\r\n0\r\n\r\n',
      '5\nhello\n0\n\n',
      '5\r\nhelloX0\r\n\r\n',
      '-1\r\n',
      '0x5\r\n',
    ]) {
      expect([body, statusOf(await talk(proxy, chunked(body)))]).toEqual([body, 400]);
    }
    const answer = await talk(proxy, chunked('5\r\nhello\r\n6\r\n world\r\n0\r\nX-Late: no\r\n\r\n'));
    expect(answer).toContain('"body":"hello world"');
    expect(answer).not.toContain('x-late');
  });

  it('a head that never ends is refused at its deadline, and one that rests before its first byte is not', async () => {
    const { session } = await world();
    const limits = { headMs: 100 };
    const proxy = await listenRelay(session, { entrance: 'http', scheme: 'http', limits });
    const answer = await talk(proxy, 'GET http://allowed.test/ HTTP/1.1\r\nHost: allow');
    expect([statusOf(answer), codeOf(answer)]).toEqual([408, 'head_too_slow']);
  });
});

describe('one connection, several requests', () => {
  it('judges each: a pipelined second one to a denied host is denied, and a third one still passes', async () => {
    const { session, proxy } = await world();
    const evil = 'GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n';
    const first = 'GET http://allowed.test/1 HTTP/1.1\r\nHost: allowed.test\r\n\r\n';
    const answer = await talk(proxy, first + evil + get('http://allowed.test/3'));
    expect([...answer.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status)).toEqual([
      '200',
      '403',
      '200',
    ]);
    expect(answer).toContain('"allow":"sally net allow box evil.test"');
    expect(session.dialled).toEqual(['allowed.test']);
    expect(session.outcomes.map(({ decision, status }) => [decision.allowed, status])).toEqual([
      [true, 200],
      [false, 403],
      [true, 200],
    ]);
  });

  it('a body that looks like a request is a body', async () => {
    const { session, proxy } = await world();
    const smuggled = 'GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n';
    const answer = await talk(proxy, post(`Content-Length: ${smuggled.length}\r\n`, smuggled));
    expect(answer.match(/^HTTP/gm)).toHaveLength(1);
    expect(answer).toContain('"body":"GET http://evil.test/');
    expect(session.outcomes).toHaveLength(1);
  });

  it('where the connection says for whom it is, Host must say the same', async () => {
    const { fixed } = await world();
    const plain = (host: string): string => `GET /x HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`;
    expect(codeOf(await talk(fixed, plain('evil.test')))).toBe('host_mismatch');
    expect(codeOf(await talk(fixed, get('http://evil.test/')))).toBe('host_mismatch');
    expect(statusOf(await talk(fixed, plain('ALLOWED.test.:80')))).toBe(200);
    expect(statusOf(await talk(fixed, get()))).toBe(200);
  });

  it('a denial is there within 50 ms', async () => {
    const { proxy } = await world();
    const tookMs: number[] = [];
    // The quickest says what the gate needs; the others say what else the machine does.
    for (let turn = 0; turn < 10; turn++) {
      const from = performance.now();
      await talk(proxy, 'GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\nConnection: close\r\n\r\n');
      tookMs.push(performance.now() - from);
    }
    expect(Math.min(...tookMs)).toBeLessThan(50);
  });
});

describe('CONNECT', () => {
  const connect = (target: string, fields = `Host: ${target}\r\n`): string =>
    `CONNECT ${target} HTTP/1.1\r\n${fields}\r\n`;

  it('is handed over with what came after it, at the proxy alone', async () => {
    const { session, fixed } = await world();
    const seen: string[] = [];
    const proxy = await listenRelay(session, {
      entrance: 'connect',
      scheme: 'http',
      onConnect: async ({ host, port }, client, head) => {
        seen.push(`${host}:${port} ${head.toString()}`);
        client.end('HTTP/1.1 200 OK\r\n\r\n');
      },
    });
    expect(statusOf(await talk(proxy, `${connect('Allowed.Test:443')}more`))).toBe(200);
    // As Python's http.client asks.
    expect(statusOf(await talk(proxy, 'CONNECT allowed.test:443 HTTP/1.0\r\n\r\n'))).toBe(200);
    expect(seen).toEqual(['allowed.test:443 more', 'allowed.test:443 ']);
    expect(codeOf(await talk(proxy, connect('allowed.test:443', 'Host: evil.test\r\n')))).toBe(
      'host_mismatch',
    );
    for (const bad of [
      'allowed.test',
      'allowed.test:0',
      'allowed.test:65536',
      'allowed.test:0443',
      'a@b:443',
      '[fe80::1%25eth0]:443',
      '127.1:443',
      '0x7f.1:443',
      '2130706433:443',
      'a..b:443',
      'http://allowed.test:443',
    ]) {
      expect([bad, codeOf(await talk(proxy, connect(bad, '')))]).toEqual([bad, 'host_invalid']);
    }
    expect(codeOf(await talk(fixed, connect('allowed.test:443')))).toBe('connect_refused');
    expect(seen).toHaveLength(2);
  });
});

describe('answers', () => {
  /** A server that sends these bytes to whoever asks. */
  async function saying(bytes: string, thenEnd = true): Promise<number> {
    const port = await listen(
      net.createServer((socket) => {
        socket.once('data', () => (thenEnd ? socket.end(bytes, 'latin1') : socket.write(bytes, 'latin1')));
      }),
    );
    const session = new LoopbackSession({ ports: { 'allowed.test': port } });
    return await listenRelay(session, { entrance: 'http', scheme: 'http' });
  }

  it('an unsolicited 101 and answers with two readings are 502, and nothing of them passes', async () => {
    for (const bytes of [
      'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nsecret',
      'HTTP/1.1 200 OK\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\nsecret',
      'HTTP/1.1 200 OK\r\nContent-Length: 6\r\nContent-Length: 7\r\n\r\nsecret',
      'HTTP/1.1 200 OK\r\nX : y\r\n\r\nsecret',
      'HTTP/1.1 200 OK\nContent-Length: 6\n\nsecret',
      'ICY 200 OK\r\n\r\nsecret',
      '',
    ]) {
      const answer = await talk(await saying(bytes), get());
      expect([bytes, statusOf(answer), answer.includes('secret')]).toEqual([bytes, 502, false]);
    }
  });

  it('keeps bodies of every framing: length, chunked, until the end, and none', async () => {
    const rows: readonly (readonly [string, string])[] = [
      ['HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello', 'Content-Length: 5'],
      [
        'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n',
        '5\r\nhello\r\n0\r\n\r\n',
      ],
      ['HTTP/1.0 200 OK\r\n\r\nhello', '5\r\nhello\r\n0\r\n\r\n'],
      ['HTTP/1.1 204 No Content\r\n\r\n', '204 No Content'],
      ['HTTP/1.1 304 Not Modified\r\nETag: "a"\r\nContent-Length: 5\r\n\r\n', 'ETag: "a"'],
      [
        'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello',
        '103 Early',
      ],
    ];
    for (const [bytes, part] of rows) expect(await talk(await saying(bytes), get())).toContain(part);
    const head = 'HEAD http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\nConnection: close\r\n\r\n';
    const answer = await talk(await saying('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n', false), head);
    expect(answer).toContain('Content-Length: 5');
    const old = 'GET http://allowed.test/ HTTP/1.0\r\nHost: allowed.test\r\n\r\n';
    const chunked = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n';
    expect(await talk(await saying(chunked), old)).toMatch(/\r\n\r\nhello$/);
  });

  it('one that breaks off does not look whole, and a client that leaves takes its request with it', async () => {
    const broken = await saying('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello');
    await expect(
      talk(broken, 'GET http://allowed.test/ HTTP/1.0\r\nHost: allowed.test\r\n\r\n'),
    ).rejects.toThrow(/ECONNRESET/);
    let left = 0;
    const { server, proxy } = await world((_request, response) => void response.on('close', () => left++));
    const socket = net.connect(proxy, '127.0.0.1');
    const asked = new Promise((resolve) => server.once('request', resolve));
    socket.write(get());
    await asked;
    socket.resetAndDestroy();
    await expect.poll(() => left, { timeout: 10_000 }).toBe(1);
  });

  it('streams: each event of a server is there before the next one is sent', async () => {
    let more: () => void = () => {};
    const { proxy } = await world((_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write('data: 1\n\n');
      more = () => void response.end('data: 2\n\n');
    });
    let asked = false;
    const answer = await talk(proxy, get(), (text) => {
      // The second event exists only because the first one has arrived.
      if (text.includes('data: 1') && !asked) {
        asked = true;
        more();
      }
      return text.includes('data: 2');
    });
    expect(answer).toContain('data: 2');
  });

  it('waits for 100 Continue', async () => {
    const { server, proxy } = await world();
    let continued = 0;
    server.on('checkContinue', (request, response) => {
      continued++;
      response.writeContinue();
      server.emit('request', request, response);
    });
    const body = 'x'.repeat(1000);
    const socket = net.connect(proxy, '127.0.0.1');
    const text = await new Promise<string>((resolve) => {
      let all = '';
      socket.write(post('Content-Length: 1000\r\nExpect: 100-continue\r\n', ''));
      socket.on('data', (chunk: Buffer) => {
        if (all === '' && chunk.toString().startsWith('HTTP/1.1 100')) socket.write(body);
        all += chunk.toString();
      });
      socket.on('end', () => resolve(all));
    });
    expect(continued).toBe(1);
    expect(text).toContain(`"body":"${body}"`);
  });

  it('goes at the pace of a client that does not read, and then gives it all', async () => {
    const total = 96 * 2 ** 20;
    const piece = Buffer.alloc(2 ** 16, 7);
    let sent = 0;
    const { proxy } = await world((_request, response) => {
      const more = (): void => {
        while (sent < total) {
          sent += piece.length;
          if (!response.write(piece)) return void response.once('drain', more);
        }
        response.end();
      };
      more();
    });
    const socket = net.connect(proxy, '127.0.0.1');
    socket.pause();
    socket.write(get());
    let before = -1;
    const stands = (): boolean => {
      const same = sent > 0 && sent === before;
      before = sent;
      return same;
    };
    await expect.poll(stands, { interval: 300, timeout: 15_000 }).toBe(true);
    expect(sent).toBeLessThan(total / 3);
    let received = 0;
    socket.on('data', (chunk: Buffer) => {
      received += chunk.length;
    });
    socket.resume();
    await new Promise((resolve) => socket.once('end', resolve));
    expect(received).toBeGreaterThanOrEqual(total);
  });

  it('hop-by-hop fields end at the gate, on both sides', async () => {
    const { proxy } = await world((request, response) => {
      response.setHeader('keep-alive', 'timeout=5');
      response.setHeader('proxy-authenticate', 'Basic');
      response.setHeader('x-stays', 'yes');
      echo(request, response);
    });
    const fields = 'Proxy-Authorization: Basic eDp5\r\nTE: trailers\r\nX-Mine: 1\r\nKeep-Alive: 300\r\n';
    const answer = await talk(
      proxy,
      `GET http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\nConnection: close, X-Mine\r\n${fields}X-Kept: 2\r\n\r\n`,
    );
    expect(answer.toLowerCase()).not.toMatch(/proxy-auth|x-mine|timeout=5|"te"/);
    expect(answer).toContain('"x-kept":"2"');
    expect(answer).toContain('x-stays: yes');
  });
});

describe('a WebSocket', () => {
  it('passes both ways once both sides agreed on it, and not where the server did not prove it', async () => {
    const key = 'dGhlIHNhbXBsZSBub25jZQ==';
    const { server, session, proxy } = await world();
    let accept = acceptFor(key);
    server.on('upgrade', (_request, socket: net.Socket) => {
      socket.write(
        `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: ${accept}\r\n\r\nhello`,
      );
      socket.on('data', (chunk: Buffer) => socket.end(`got ${chunk.toString()}`));
    });
    const fields = `Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: ${key}\r\nSec-WebSocket-Version: 13\r\n`;
    const open = `GET http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n${fields}\r\n`;
    const answer = await talk(proxy, [open, 'ping']);
    expect(answer).toMatch(/^HTTP\/1\.1 101/);
    expect(answer).toMatch(/hellogot ping$/);
    await expect.poll(() => session.outcomes[0]?.status, { timeout: 10_000 }).toBe(101);
    accept = 'wrong';
    expect(statusOf(await talk(proxy, open, (text) => text.includes('}')))).toBe(502);
  });
});
