import { setMaxListeners } from 'node:events';
import http2 from 'node:http2';
import https from 'node:https';
import tls from 'node:tls';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import {
  connectThrough,
  LoopbackSession,
  listen,
  listenIntercepting,
} from '../../test/support/loopback-gate.ts';
import { until } from '../../test/support/until.ts';
import { EntranceBudget } from './entrance-budget.ts';
import { RareNotes } from './rare-notes.ts';
import { RequestBudget } from './request-budget.ts';
import { SandboxAuthority } from './tls/sandbox-authority.ts';
import { upstreamTls } from './tls/system-roots.ts';

function collected() {
  const told: string[] = [];
  return { told, notes: new RareNotes((code, message) => told.push(`${code}: ${message}`)) };
}

/** A gate for two sandboxes: each has an entrance, and a budget, of its own. */
async function world() {
  const company = SandboxAuthority.create('a company', new Date());
  const origin = await listen(
    https.createServer(company.leafFiles('allowed.test'), (_request, response) => response.end('fine')),
  );
  const session = new LoopbackSession({ ports: { 'allowed.test': origin }, inspects: true });
  const ca = SandboxAuthority.create('box', new Date());
  const roots = upstreamTls([company.certificatePem]);
  const entrance = async () => {
    const { told, notes } = collected();
    const budget = new RequestBudget(notes);
    const proxy = await listenIntercepting(session, { ca, upstreamTls: roots, budget });
    return { told, budget, proxy };
  };
  const noisy = await entrance();
  return { ca, noisy, budget: noisy.budget, quiet: await entrance(), session };
}

async function opened(proxy: number, ca: SandboxAuthority): Promise<tls.TLSSocket> {
  const socket = await connectThrough(proxy, 'allowed.test:443');
  const ALPNProtocols = ['h2', 'http/1.1'];
  const secured = tls.connect({ socket, servername: 'allowed.test', ca: ca.certificatePem, ALPNProtocols });
  secured.on('error', () => {});
  await new Promise<void>((resolve, reject) => secured.once('secureConnect', resolve).once('error', reject));
  return secured;
}

function speakHttp2(socket: tls.TLSSocket): http2.ClientHttp2Session {
  const session = http2.connect('https://allowed.test', { createConnection: () => socket });
  session.on('error', () => {});
  onTestFinished(() => session.destroy());
  return session;
}

async function get(session: http2.ClientHttp2Session): Promise<number> {
  const stream = session.request({ ':path': '/' });
  stream.resume();
  return await new Promise((resolve, reject) => {
    stream.once('response', (headers) => resolve(Number(headers[':status'])));
    stream.once('error', reject);
  });
}

const frameKind = { headers: 1, reset: 3, settings: 4, goaway: 7 } as const;

function frame(kind: number, flags: number, stream: number, payload: Buffer = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.set([kind, flags], 3);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** Asks and takes it back in one packet, more often than the budget has room for; resolves with the code of the gate's GOAWAY. */
async function resetUntilClosed(socket: tls.TLSSocket): Promise<number | undefined> {
  const host = Buffer.from('allowed.test');
  // GET, https, / and :authority, by HPACK's static table.
  const fields = Buffer.concat([Buffer.from([0x82, 0x87, 0x84, 0x01, host.length]), host]);
  const requests = Array.from({ length: 400 }, (_, at) => [
    frame(frameKind.headers, 5, at * 2 + 1, fields),
    frame(frameKind.reset, 0, at * 2 + 1, Buffer.from([0, 0, 0, 8])),
  ]);
  const answers: Buffer[] = [];
  socket.on('data', (data: Buffer) => answers.push(data));
  const closed = new Promise((resolve) => socket.once('close', resolve));
  const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
  socket.write(Buffer.concat([preface, frame(frameKind.settings, 0, 0), ...requests.flat()]));
  await closed;
  return goawayCode(Buffer.concat(answers));
}

function goawayCode(bytes: Buffer): number | undefined {
  for (let at = 0; at + 9 <= bytes.length; at += 9 + bytes.readUIntBE(at, 3)) {
    if (bytes[at + 3] === frameKind.goaway) return bytes.readUInt32BE(at + 13);
  }
  return undefined;
}

describe('[N22] a sandbox that resets HTTP/2 streams without end', () => {
  it('loses its HTTP/2 connections, is offered HTTP/1.1, and takes nothing from another sandbox', async () => {
    const { ca, noisy, quiet } = await world();
    const bystander = speakHttp2(await opened(noisy.proxy, ca));
    const other = speakHttp2(await opened(quiet.proxy, ca));
    expect(await get(bystander)).toBe(200);
    const ended = new Promise<void>((resolve) => bystander.once('close', resolve));

    expect(await resetUntilClosed(await opened(noisy.proxy, ca))).toBe(
      http2.constants.NGHTTP2_ENHANCE_YOUR_CALM,
    );
    await ended;
    expect(noisy.told).toHaveLength(1);
    expect(noisy.told[0]).toContain('egress_over_budget: more than 32 HTTP/2 streams reset a second');

    const next = await opened(noisy.proxy, ca);
    expect(next.alpnProtocol).toBe('http/1.1');
    next.write('GET / HTTP/1.1\r\nHost: allowed.test\r\nConnection: close\r\n\r\n');
    const head = await new Promise<string>((resolve) =>
      next.once('data', (data: Buffer) => resolve(data.toString())),
    );
    expect(head).toMatch(/^HTTP\/1\.1 200 /);
    next.destroy();
    expect([await get(other), quiet.told]).toEqual([200, []]);
  });

  it.each([
    ['PING', () => frame(6, 0, 0, Buffer.alloc(8))],
    ['SETTINGS', () => frame(frameKind.settings, 0, 0)],
  ])('loses them as well by %s frames above the budget', async (_kind, one) => {
    const { ca, noisy, quiet } = await world();
    const other = speakHttp2(await opened(quiet.proxy, ca));
    const socket = await opened(noisy.proxy, ca);
    const closed = new Promise((resolve) => socket.once('close', resolve));
    socket.resume();
    socket.on('error', () => {});
    const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
    socket.write(Buffer.concat([preface, frame(frameKind.settings, 0, 0)]));
    // In portions, each of which is answered: more answers at once are a violation in itself.
    const write = (): void => void socket.write(Buffer.concat(Array.from({ length: 200 }, one)));
    const timer = setInterval(write, 20);
    await closed;
    clearInterval(timer);
    expect(noisy.told).toEqual([
      expect.stringContaining('egress_over_budget: more than 256 HTTP/2 control frames a second'),
    ]);
    expect([await get(other), quiet.told]).toEqual([200, []]);
  });

  it('may have lost a connection by then: closing it once more is no failure', async () => {
    const { ca, noisy, budget } = await world();
    const closes: (() => void)[] = [];
    const left = new Promise<void>((resolve) => {
      vi.spyOn(budget, 'http2').mockImplementation((close) => {
        closes.push(close);
        return resolve;
      });
    });
    const client = speakHttp2(await opened(noisy.proxy, ca));
    expect(await get(client)).toBe(200);
    client.destroy();
    await left;
    expect(closes).toHaveLength(1);
    expect(closes[0]).not.toThrow();
  });

  it('is told apart from a client that asks as often and takes its answers', async () => {
    const { ca, noisy } = await world();
    const client = speakHttp2(await opened(noisy.proxy, ca));
    for (let round = 0; round < 12; round++) {
      const statuses = await Promise.all(Array.from({ length: 50 }, () => get(client)));
      expect(new Set(statuses)).toEqual(new Set([200]));
    }
    expect([client.closed, noisy.told]).toEqual([false, []]);
  });
});

describe('[N22] a sandbox that opens HTTP/2 streams without end', () => {
  it('has so many connections of this machine and no more; streams above it are refused, and may be opened again', async () => {
    const company = SandboxAuthority.create('a company', new Date());
    const waiting: (() => void)[] = [];
    const origin = await listen(
      https.createServer(company.leafFiles('allowed.test'), (_request, response) => {
        waiting.push(() => response.end('late'));
      }),
    );
    const session = new LoopbackSession({ ports: { 'allowed.test': origin }, inspects: true });
    const ca = SandboxAuthority.create('box', new Date());
    const budget = new RequestBudget(collected().notes, { served: 4, waiting: 4 });
    const roots = upstreamTls([company.certificatePem]);
    const proxy = await listenIntercepting(session, { ca, upstreamTls: roots, budget });
    const client = speakHttp2(await opened(proxy, ca));
    const codes: number[] = [];
    const statuses = Array.from({ length: 12 }, async () => {
      const stream = client.request({ ':path': '/' });
      stream.resume();
      stream.on('error', () => {});
      const status = new Promise<number>((resolve) =>
        stream.once('response', (headers) => resolve(Number(headers[':status']))),
      );
      const closed = new Promise<number>((resolve) =>
        stream.once('close', () => {
          codes.push(stream.rstCode);
          resolve(stream.rstCode);
        }),
      );
      return await Promise.race([status, closed]);
    });
    await until(async () => waiting.length === 4 && codes.length === 4);
    expect(codes).toEqual(Array(4).fill(http2.constants.NGHTTP2_REFUSED_STREAM));
    const answering = setInterval(() => waiting.shift()?.(), 1);
    onTestFinished(() => clearInterval(answering));
    expect((await Promise.all(statuses)).filter((status) => status === 200)).toHaveLength(8);
    expect(await get(client)).toBe(200);
  });
});

describe('[N22] the budget of a sandbox', () => {
  it('lets a burst of requests pass at once, and those after it at a rate', async () => {
    const burst = collected();
    const within = new RequestBudget(burst.notes);
    await Promise.all(Array.from({ length: 2048 }, () => within.request()));
    expect(burst.told).toEqual([]);
    const { told, notes } = collected();
    const budget = new RequestBudget(notes);
    const from = performance.now();
    await Promise.all(Array.from({ length: 2148 }, () => budget.request()));
    expect(performance.now() - from).toBeGreaterThan(100);
    expect(told[0]).toContain('more than 512 requests a second');
  });

  it('serves so many requests at once, lets others wait, and takes in no more than that', async () => {
    const { told, notes } = collected();
    const budget = new RequestBudget(notes, { served: 2, waiting: 2 });
    const [first] = await Promise.all([budget.enter(), budget.enter()]);
    expect([told, budget.isFull]).toEqual([[], false]);
    let isServed = false;
    const third = budget.enter().then((leave) => {
      isServed = true;
      return leave;
    });
    const gone = new AbortController();
    const fourth = budget.enter(gone.signal);
    expect(budget.isFull).toBe(true);
    await new Promise((resolve) => setImmediate(resolve));
    expect([isServed, told[0]]).toEqual([false, expect.stringContaining('more than 2 requests at once')]);
    gone.abort();
    (await fourth)();
    expect(budget.isFull).toBe(false);
    first?.();
    first?.();
    await third;
    expect(isServed).toBe(true);
  });

  it('does not let a request wait whose client has left', async () => {
    const budget = new RequestBudget(collected().notes);
    for (let count = 0; count < 8000; count++) void budget.request();
    const gone = new AbortController();
    const waiting = budget.request(gone.signal);
    gone.abort();
    await waiting;
  });

  it('holds few packed bodies at once, and gives a place back when its request is over', async () => {
    const budget = new RequestBudget(collected().notes);
    const gone = new AbortController();
    setMaxListeners(0, gone.signal);
    for (let count = 0; count < 16; count++) await budget.hold(gone.signal);
    const next = budget.hold();
    let isHeld = false;
    void next.then(() => {
      isHeld = true;
    });
    await new Promise((resolve) => setImmediate(resolve));
    expect(isHeld).toBe(false);
    gone.abort();
    await next;
  });

  it('refuses connections above its rate, delays questions, and notes it once', async () => {
    const { told, notes } = collected();
    const budget = new EntranceBudget(notes);
    const taken = Array.from({ length: 3000 }, () => budget.connection()).filter(Boolean).length;
    expect(taken).toBeGreaterThanOrEqual(1024);
    expect(taken).toBeLessThan(3000);
    expect(told).toHaveLength(1);
    const burst = collected();
    const within = new EntranceBudget(burst.notes);
    await Promise.all(Array.from({ length: 512 }, () => within.question()));
    expect(burst.told).toEqual([]);
    const other = collected();
    const asked = new EntranceBudget(other.notes);
    const from = performance.now();
    await Promise.all(Array.from({ length: 612 }, () => asked.question()));
    expect(performance.now() - from).toBeGreaterThan(250);
    expect(other.told[0]).toContain('DNS questions a second');
  });
});
