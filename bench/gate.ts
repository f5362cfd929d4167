/**
 * `npm run bench -- gate`: an HTTPS GET directly, through a tunnel of the gate and through TLS that the gate opened; then
 * throughput, 200 connections at once, and memory over 10,000 requests. Client, gate and server share one process, so what the
 * gate adds is rather more than it would be. The way through porter is not part of it.
 */

import https from 'node:https';
import net from 'node:net';
import type { Duplex } from 'node:stream';
import tls from 'node:tls';
import type { Attempt, EgressSession } from '../src/gate/contract.ts';
import { ByteReader } from '../src/gate/http/byte-reader.ts';
import { joinStreams } from '../src/gate/http/join-streams.ts';
import { relayHttp } from '../src/gate/http/relay.ts';
import { readClientHello } from '../src/gate/tls/client-hello.ts';
import { interceptTls } from '../src/gate/tls/intercept.ts';
import { SandboxAuthority } from '../src/gate/tls/sandbox-authority.ts';
import { upstreamTls } from '../src/gate/tls/system-roots.ts';
import { numberOption } from './box.ts';
import { compete, makeReport, present } from './harness.ts';
import { listening, originServer } from './https-origin.ts';

const host = 'bench.test';
function sessionTo(port: number): EgressSession {
  return {
    sandbox: 'bench',
    decide: (attempt: Attempt) => ({ allowed: true, attempt, rule: host, inspect: true }),
    dial: async () => {
      const socket = net.connect(port, '127.0.0.1');
      socket.setNoDelay(true);
      await new Promise<void>((resolve, reject) => socket.once('connect', resolve).once('error', reject));
      return socket;
    },
    report: () => {},
  };
}

type Open = (
  client: Duplex,
  session: EgressSession,
  authority: Parameters<typeof interceptTls>[3]['authority'],
) => Promise<void>;

function gate(session: EgressSession, open: Open): net.Server {
  const { signal } = new AbortController();
  return net.createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    void relayHttp(client, session, {
      entrance: 'connect',
      scheme: 'http',
      signal,
      onConnect: async (authority, stream) => {
        stream.write('HTTP/1.1 200 Connection established\r\n\r\n');
        await open(stream, session, authority);
      },
    });
  });
}

const tunnel: Open = async (client, session, destination) => {
  const decision = session.decide({ entrance: 'connect', destination, scheme: 'tcp' });
  if (!decision.allowed) return;
  const stream = await session.dial(decision, new AbortController().signal);
  const end = (one: Duplex) => ({ stream: one, bytes: new ByteReader(one).pieces() });
  await joinStreams(end(client), end(stream), { out: 0, in: 0 });
};

/** One GET on a connection of its own; resolves with how many bytes the body had. */
async function get(port: number, proxied: boolean, ca: string, path: string): Promise<number> {
  const socket = net.connect({ port, host: '127.0.0.1', noDelay: true });
  if (proxied) {
    socket.write(`CONNECT ${host}:443 HTTP/1.1\r\nHost: ${host}:443\r\n\r\n`);
    await new Promise<void>((resolve, reject) => socket.once('data', () => resolve()).once('error', reject));
  }
  const secured = tls.connect({ socket, servername: host, ca });
  return await new Promise((resolve, reject) => {
    const createConnection = (): Duplex => secured;
    https
      .get({ host, path, createConnection, headers: { host } }, (response) => {
        if (response.statusCode !== 200) reject(new Error(`status ${response.statusCode}`));
        let bytes = 0;
        response.on('data', (chunk: Buffer) => {
          bytes += chunk.length;
        });
        response.on('end', () => {
          socket.destroy();
          resolve(bytes);
        });
      })
      .on('error', reject);
  });
}

export async function main(args: readonly string[]): Promise<number> {
  const rounds = numberOption(args, 'rounds', 30);
  const megabytes = numberOption(args, 'megabytes', 200);
  const company = SandboxAuthority.create('bench', new Date());
  const ca = SandboxAuthority.create('box', new Date());
  const roots = upstreamTls([company.certificatePem]);
  const origin = originServer(company);
  const direct = await listening(origin);
  const session = sessionTo(direct);
  const intercept: Open = async (client, own, authority) => {
    const hello = await readClientHello(client);
    const decision = own.decide({ entrance: 'connect', destination: authority, scheme: 'https' });
    if ('notTls' in hello || !decision.allowed) return;
    const { signal } = new AbortController();
    await interceptTls(client, hello, own, { decision, authority, ca, upstreamTls: roots, signal });
  };
  const tunnelled = gate(session, tunnel);
  const opened = gate(session, intercept);
  const ways = {
    direct: { port: direct, proxied: false, trusted: company.certificatePem },
    tunnel: { port: await listening(tunnelled), proxied: true, trusted: company.certificatePem },
    opened: { port: await listening(opened), proxied: true, trusted: ca.certificatePem },
  };
  const ask = async (way: keyof typeof ways, path = '/0'): Promise<number> =>
    await get(ways[way].port, ways[way].proxied, ways[way].trusted, path);
  const rows = await compete(
    (['direct', 'tunnel', 'opened'] as const).map((name) => ({
      name,
      perRound: 10,
      once: async () => void (await ask(name)),
    })),
    rounds,
  );
  present(makeReport('gate', rows, {}), args);
  const [base, viaTunnel, viaOpened] = rows.map(({ p50Ms }) => p50Ms);
  say(`added at p50: tunnel ${added(viaTunnel, base)}, opened ${added(viaOpened, base)}`);
  for (const way of ['direct', 'tunnel', 'opened'] as const) {
    const from = performance.now();
    const cpu = process.cpuUsage();
    const bytes = await ask(way, `/${megabytes * 1_000_000}`);
    if (bytes !== megabytes * 1_000_000) throw new Error(`${bytes} bytes came`);
    const { user, system } = process.cpuUsage(cpu);
    const perSecond = Math.round(bytes / 1000 / (performance.now() - from));
    // Of all three parts together: it says something on a machine that is busy otherwise, too.
    say(`${way}: ${perSecond} MB/s, ${Math.round(bytes / (user + system))} MB per second of CPU`);
  }
  for (const way of ['direct', 'tunnel', 'opened'] as const) {
    const cpu = process.cpuUsage();
    for (let count = 0; count < 100; count++) await ask(way);
    const { user, system } = process.cpuUsage(cpu);
    say(`${way}: ${((user + system) / 100_000).toFixed(2)} ms of CPU for a GET`);
  }
  for (const way of ['tunnel', 'opened'] as const) {
    const from = performance.now();
    await Promise.all(Array.from({ length: 200 }, () => ask(way, '/100000')));
    say(`${way}: 200 at once in ${Math.round(performance.now() - from)} ms`);
  }
  await memoryOver(numberOption(args, 'requests', 10_000), () => ask('opened'));
  for (const server of [origin, tunnelled, opened]) server.close();
  return 0;
}

async function memoryOver(requests: number, ask: () => Promise<number>): Promise<void> {
  const sample = (): string => `${Math.round(process.memoryUsage().rss / 2 ** 20)} MiB`;
  const seen = [sample()];
  for (let done = 0; done < requests; done += 20) {
    await Promise.all(Array.from({ length: 20 }, ask));
    if (done % 2500 === 2480) seen.push(sample());
  }
  say(`opened: resident over ${requests} requests: ${seen.join(', ')}`);
}

const added = (value = Number.NaN, base = Number.NaN): string => `${(value - base).toFixed(2)} ms`;
const say = (text: string): void => void process.stderr.write(`${text}\n`);
