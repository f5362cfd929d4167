/**
 * `npm run bench -- gate-box`: the whole way out of a real sandbox, as its programs have it: porter, the door, the built daemon's
 * gate, and a server on this machine. The same client runs on the machine itself for comparison, in turns.
 */

import { spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { SandboxAuthority } from '../src/gate/tls/sandbox-authority.ts';
import { packageInfo } from '../src/lib/package-root.ts';
import { Sandbox } from '../src/sdk/sandbox.ts';
import { numberOption, openBenchEngine } from './box.ts';
import { withHome } from './daemon-home.ts';
import { makeReport, present, quantile, type Row } from './harness.ts';
import { listening, originServer } from './https-origin.ts';
import { nameServer } from './name-server.ts';

const tunnelled = 'tunnel.test';
const opened = 'opened.test';

interface Client {
  readonly name: string;
  readonly order: (words: string) => Promise<readonly number[]>;
  readonly end: () => void;
}

function clientOn(name: string, stdin: Writable, output: AsyncIterable<Buffer>, end: () => void): Client {
  const lines = linesOf(output)[Symbol.asyncIterator]();
  return {
    name,
    order: async (words) => {
      stdin.write(`${words}\n`);
      const { value, done } = await lines.next();
      if (done === true) throw new Error(`${name}: the client ended at ${words}`);
      return String(value).split(' ').map(Number);
    },
    end,
  };
}

async function* linesOf(output: AsyncIterable<Buffer>): AsyncGenerator<string> {
  let rest = '';
  for await (const chunk of output) {
    const lines = `${rest}${chunk.toString()}`.split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
  }
}

const script = join(packageInfo().root, 'bench/gate-client.py');

function hereClient(port: number, roots: string): Client {
  const child = spawn('python3', [script, 'direct', tunnelled, String(port), roots], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  return clientOn('direct, on this machine', child.stdin, child.stdout as Readable, () => child.kill());
}

async function insideClient(box: Sandbox, name: string, words: readonly string[]): Promise<Client> {
  const running = await box.spawn(['python3', '/tmp/gate-client.py', ...words], {
    stdin: true,
    timeoutMs: 0,
  });
  void (async () => {
    for await (const chunk of running.stderr) process.stderr.write(chunk);
  })();
  return clientOn(name, running.stdin, running.stdout, () => void running.kill(0));
}

async function inTurns(
  clients: readonly Client[],
  order: string,
  rounds: number,
  what: string,
): Promise<readonly Row[]> {
  const samples = new Map<string, number[]>(clients.map(({ name }) => [name, []]));
  for (const client of clients) await client.order(`${order} 5`);
  for (let round = 0; round < rounds; round++) {
    for (const client of clients) samples.get(client.name)?.push(...(await client.order(`${order} 10`)));
  }
  const base = quantile(samples.get(clients[0]?.name ?? '') ?? [], 0.5);
  return clients.map(({ name }) => {
    const own = samples.get(name) ?? [];
    const p50Ms = quantile(own, 0.5);
    say(`${what}, ${name}: p50 ${p50Ms.toFixed(2)} ms, ${(p50Ms - base).toFixed(2)} ms more than direct`);
    const rest = { p95Ms: quantile(own, 0.95), minMs: Math.min(...own), ratio: p50Ms / base };
    return { name: `${what}, ${name}`, samples: own.length, p50Ms, ...rest };
  });
}

export async function main(args: readonly string[]): Promise<number> {
  const rounds = numberOption(args, 'rounds', 30);
  const bytes = numberOption(args, 'megabytes', 200) * 1_000_000;
  const company = SandboxAuthority.create('bench', new Date());
  const origin = originServer(company);
  const port = await listening(origin);
  const names = await nameServer();
  const engine = await openBenchEngine();
  await withHome(engine, async ({ stateDir, start }) => {
    const roots = join(stateDir, 'company.pem');
    writeFileSync(roots, company.certificatePem);
    const daemon = await start({ SALLYPORT_DNS_SERVERS: names.server, SALLYPORT_EXTRA_CA_CERTS: roots });
    const allow = [
      `${tunnelled}:${port}`,
      { host: opened, ports: [port], methods: ['GET'] },
      `127.0.0.1:${port}`,
    ];
    const box = await Sandbox.create({ image: engine.image, egress: { allow } }, { client: daemon.client });
    await box.files.write('/tmp/gate-client.py', readFileSync(script));
    await box.files.write('/tmp/company.pem', company.certificatePem);
    const own = `${box.info.user.home}/.sallyport/ca-bundle.pem`;
    const place = String(port);
    const clients = [
      hereClient(port, roots),
      await insideClient(box, 'tunnel', ['proxy', tunnelled, place, '/tmp/company.pem']),
      await insideClient(box, 'tunnel by name', ['name', tunnelled, place, '/tmp/company.pem']),
      await insideClient(box, 'TLS opened', ['proxy', opened, place, own]),
    ];
    const rows = [
      ...(await inTurns(clients, 'get', rounds, 'a connection each')),
      ...(await inTurns(clients, 'keep', rounds, 'one connection')),
    ];
    present(makeReport('gate-box', rows, await engine.versions()), args);
    for (const client of clients) {
      const before = cpuSeconds(daemon.pid);
      const [seconds = Number.NaN] = await client.order(`bulk ${bytes}`);
      const cpu = (cpuSeconds(daemon.pid) - before) * (1e8 / bytes);
      say(
        `${client.name}: ${Math.round(bytes / 1e6 / seconds)} MB/s, ${cpu.toFixed(2)} s of the daemon's CPU for 100 MB`,
      );
    }
    for (const client of clients.slice(1)) {
      const before = cpuSeconds(daemon.pid);
      await client.order('get 200');
      const cpu = (cpuSeconds(daemon.pid) - before) * (1000 / 200);
      say(`${client.name}: ${cpu.toFixed(2)} ms of the daemon's CPU for a GET on a connection of its own`);
    }
    for (const client of clients.slice(1)) {
      const [seconds] = await client.order('many 200 100000');
      say(`${client.name}: 200 connections open at once, 100 KB each, in ${seconds} s`);
    }
    const requests = numberOption(args, 'requests', 10_000);
    if (requests > 0) await memoryOver(requests, clients[3], daemon.pid);
    for (const client of clients) client.end();
    await box.remove();
    daemon.client.close();
  });
  origin.close();
  origin.closeAllConnections();
  names.close();
  return 0;
}

/** Says something on a machine that is busy otherwise, too. */
function cpuSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

async function memoryOver(requests: number, client: Client | undefined, pid: number): Promise<void> {
  const resident = (): string => {
    const kb = Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
    return `${Math.round(kb / 1024)} MiB`;
  };
  const seen = [resident()];
  for (let part = 0; part < 5; part++) {
    await client?.order(`flood ${Math.round(requests / 5)} 20`);
    seen.push(resident());
  }
  say(`TLS opened: the daemon's resident memory over ${requests} requests: ${seen.join(', ')}`);
}

const say = (text: string): void => void process.stderr.write(`${text}\n`);
