/**
 * `npm run bench -- noisy`: p50 and p99 of the API and of another sandbox's `true`, quiet and while one sandbox at its default limits
 * floods. `spin` and `pipes` are controls: they take the same processors and give the daemon nothing to do.
 * Ends with 1 where the p99 beside a flood is above the limit of noisy-limit.ts.
 */

import { execFileSync } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { SandboxAuthority } from '../src/gate/tls/sandbox-authority.ts';
import { packageInfo } from '../src/lib/package-root.ts';
import type { DaemonClient } from '../src/sdk/client.ts';
import { Sandbox } from '../src/sdk/sandbox.ts';
import { numberOption, openBenchEngine } from './box.ts';
import { withHome } from './daemon-home.ts';
import { makeReport, present, quantile, type Row } from './harness.ts';
import { listening, originServer } from './https-origin.ts';
import { nameServer } from './name-server.ts';
import { type Figures, nameOf, ratioToQuiet, verdictOf } from './noisy-limit.ts';

const host = 'opened.test';
const pauseMs = 5;
const settleMs = 1000;
const ways = [
  'spin',
  'pipes',
  'resets',
  'gzip',
  'drips',
  'connects',
  'requests',
  'dns',
  'names',
  'output',
  'lines',
  'forks',
  'files',
] as const;

interface Probe {
  readonly name: string;
  readonly once: () => Promise<unknown>;
}

function probes(client: DaemonClient, quiet: Sandbox): readonly Probe[] {
  return [
    { name: 'GET /v1/health', once: () => client.json('GET', '/v1/health') },
    { name: 'GET /v1/sandboxes', once: () => client.json('GET', '/v1/sandboxes') },
    {
      name: 'exec true',
      once: async () => {
        const { exitCode } = await quiet.exec(['true']);
        if (exitCode !== 0) throw new Error(`true ended with ${exitCode}`);
      },
    },
  ];
}

/** Each by itself, one after the other, so that a slow one does not hide the others. */
async function sample(
  all: readonly Probe[],
  seconds: number,
): Promise<ReadonlyMap<string, readonly number[]>> {
  const until = performance.now() + seconds * 1000;
  const taken = await Promise.all(
    all.map(async ({ name, once }) => {
      const times: number[] = [];
      while (performance.now() < until) {
        const from = performance.now();
        await once();
        times.push(performance.now() - from);
        await later(pauseMs);
      }
      return [name, times] as const;
    }),
  );
  return new Map(taken);
}

const later = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

function figures(way: string, taken: ReadonlyMap<string, readonly number[]>): readonly Figures[] {
  return [...taken].map(([probe, times]) => ({
    way,
    probe,
    p50Ms: quantile(times, 0.5),
    p99Ms: quantile(times, 0.99),
    maxMs: Math.max(...times),
    samples: times.length,
  }));
}

/** Runs the flood in the background, where nobody reads its output, while `work` runs. */
async function during<T>(
  client: DaemonClient,
  box: Sandbox,
  way: string,
  words: readonly string[],
  work: () => Promise<T>,
): Promise<T> {
  const execs = `/v1/sandboxes/${box.id}/execs`;
  const argv = ['python3', '/tmp/flood-client.py', way, ...words];
  const { id } = await client.json<{ id: string }>('POST', execs, {
    body: { argv, background: true, timeout_ms: 0 },
  });
  await later(settleMs);
  const done = await work();
  const { state } = await client.json<{ state: string }>('GET', `${execs}/${id}`);
  if (state !== 'running')
    throw new Error(
      `the flood ended by itself: ${JSON.stringify(await client.json('GET', `${execs}/${id}/wait`))}`,
    );
  const told = await box.files.readText('/tmp/told');
  const [flooded, count] = told.split(' ');
  if (flooded !== way || Number(count) === 0) throw new Error(`the flood ${way} did nothing: ${told}`);
  await client.json('POST', `${execs}/${id}/kill`, { body: { grace_ms: 0 } });
  await client.json('GET', `${execs}/${id}/wait`);
  say(`  the flood: ${told}`);
  return done;
}

function chosenWays(args: readonly string[]): readonly string[] {
  const only = args.find((arg) => arg.startsWith('--only='));
  if (only === undefined) return ways;
  const chosen = only.slice('--only='.length).split(',');
  const unknown = chosen.filter((way) => !ways.some((each) => each === way));
  if (unknown.length > 0) throw new Error(`no flood ${unknown.join(', ')}; there are ${ways.join(', ')}`);
  return chosen;
}

export async function main(args: readonly string[]): Promise<number> {
  const seconds = numberOption(args, 'seconds', 60);
  const floods = chosenWays(args);
  const company = SandboxAuthority.create('bench', new Date());
  const origin = originServer(company);
  const port = await listening(origin);
  const names = await nameServer();
  const engine = await openBenchEngine();
  const rows: Figures[] = [];
  await withHome(engine, async ({ stateDir, start }) => {
    const roots = join(stateDir, 'company.pem');
    writeFileSync(roots, company.certificatePem);
    const pipe = `${stateDir}.loop`;
    execFileSync('mkfifo', [pipe]);
    const { client, pid } = await start({
      NODE_OPTIONS: `--require ${join(packageInfo().root, 'bench/loop-watch.cjs')}`,
      SALLYPORT_TEST_PIPE: pipe,
      SALLYPORT_DNS_SERVERS: names.server,
      SALLYPORT_EXTRA_CA_CERTS: roots,
    });
    const allow = [
      { host, ports: [port], methods: ['GET', 'POST'] },
      `**.many.test:${port}`,
      `127.0.0.1:${port}`,
    ];
    const noisy = await Sandbox.create({ image: engine.image, egress: { allow } }, { client });
    const quiet = await Sandbox.create({ image: engine.image }, { client });
    const script = join(packageInfo().root, 'bench/flood-client.py');
    await noisy.files.write('/tmp/flood-client.py', readFileSync(script));
    await noisy.files.write('/tmp/bomb.gz', gzipSync(Buffer.alloc(16 * 2 ** 20 - 1), { level: 9 }));
    const bundle = `${noisy.info.user.home}/.sallyport/ca-bundle.pem`;
    const all = probes(client, quiet);
    await sample(all, 1);
    await loopFigures(pid, pipe);
    rows.push(...show(figures('quiet', await sample(all, seconds)), []));
    say(`  the loop: ${await loopFigures(pid, pipe)}`);
    for (const way of floods) {
      const before = cpuSeconds(pid);
      const taken = await during(client, noisy, way, [host, String(port), bundle], () =>
        sample(all, seconds),
      );
      const cpu = (cpuSeconds(pid) - before).toFixed(1);
      say(`  the daemon: ${cpu} s of processor time; its loop: ${await loopFigures(pid, pipe)}`);
      rows.push(...show(figures(way, taken), rows));
    }
    await Promise.all([noisy.remove(), quiet.remove()]);
    client.close();
    rmSync(pipe);
  });
  origin.close();
  origin.closeAllConnections();
  names.close();
  present(
    makeReport(
      'noisy',
      rows.map((row) => asRow(row, rows)),
      await engine.versions(),
    ),
    args,
  );
  const { exitCode, message } = verdictOf(rows);
  say(message);
  return exitCode;
}

function show(rows: readonly Figures[], before: readonly Figures[]): readonly Figures[] {
  for (const row of rows) {
    const { p50Ms, p99Ms, maxMs } = row;
    const ratio = ratioToQuiet(row, [...before, ...rows]);
    say(
      `${nameOf(row).padEnd(32)} p50 ${p50Ms.toFixed(1)} ms, p99 ${p99Ms.toFixed(1)} ms, max ${maxMs.toFixed(0)} ms, ${ratio.toFixed(1)} times quiet`,
    );
  }
  return rows;
}

function asRow(row: Figures, rows: readonly Figures[]): Row {
  const { p50Ms, p99Ms, maxMs, samples } = row;
  return { name: nameOf(row), samples, p50Ms, p99Ms, maxMs, ratio: ratioToQuiet(row, rows) };
}

/** Of the API's thread, in processor time, so that they hold on a busy machine as well. */
async function loopFigures(pid: number, pipe: string): Promise<string> {
  process.kill(pid, 'SIGUSR2');
  const told = JSON.parse(await readFile(pipe, 'utf8')) as { longestMs: number; cpuMs: number };
  return `${(told.cpuMs / 1000).toFixed(1)} s, longest stretch ${told.longestMs.toFixed(1)} ms`;
}

function cpuSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

const say = (text: string): void => void process.stderr.write(`${text}\n`);
