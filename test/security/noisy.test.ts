/**
 * [N22] One sandbox that floods, at its default limits, beside one that does not. A busy machine makes every answer late, so this looks at the
 * daemon itself: how long its event loop was held at a time, in processor time. `npm run bench -- noisy` has the latencies.
 */

import { execFileSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, it, onTestFinished } from 'vitest';
import { packageInfo } from '../../src/lib/package-root.ts';
import { followWireEvents } from '../../src/sdk/events.ts';
import type { Sandbox } from '../../src/sdk/sandbox.ts';
import { newFolder } from '../support/cli.ts';
import { daemonHome, type TestDaemon } from '../support/daemon-home.ts';
import { makeSandbox, pidOf } from '../support/daemon-world.ts';
import { testDns } from '../support/dns-server.ts';
import { serveSite } from '../support/package-site.ts';
import { until } from '../support/until.ts';

/** Before there were budgets: 1281 ms by resets, 86 ms by packed bodies. A collection of garbage takes some milliseconds, too. */
const mostStretchMs = 50;
/** Processor time grows as well where neighbours take caches and host time: `spin`, which asks the daemon for nothing, shows by how much. */
const mostTimesSpin = 3;

/** Each way of bench/flood-client.py, and how much of it is a flood. */
const floods = [
  ['resets', 1000],
  ['gzip', 6],
  ['drips', 20_000],
  ['connects', 1500],
  ['requests', 2500],
  ['dns', 1000],
  ['names', 1],
  ['output', 20_000_000],
  ['lines', 20_000],
  ['forks', 500],
  ['files', 100],
] as const;

async function world() {
  const folder = await newFolder('own');
  await writeFile(join(folder, '0'), 'ok');
  const site = await serveSite(folder);
  const roots = join(folder, 'root.pem');
  await writeFile(roots, site.root);
  const dns = await testDns({ 'opened.test': ['127.0.0.1'] });
  const home = await daemonHome();
  const pipe = `${home.stateDir}.loop`;
  execFileSync('mkfifo', [pipe]);
  onTestFinished(() => rmSync(pipe));
  const { root } = packageInfo();
  const daemon = await home.start({
    NODE_OPTIONS: `--require ${join(root, 'bench/loop-watch.cjs')}`,
    SALLYPORT_TEST_PIPE: pipe,
    SALLYPORT_DNS_SERVERS: dns.server,
    SALLYPORT_EXTRA_CA_CERTS: roots,
  });
  const { port } = site;
  const allow = [
    { host: 'opened.test', ports: [port], methods: ['GET', 'POST'] },
    `**.many.test:${port}`,
    `127.0.0.1:${port}`,
  ];
  const noisy = await makeSandbox(daemon, { egress: { allow } });
  const quiet = await makeSandbox(daemon);
  await noisy.files.write('/tmp/flood-client.py', await readFile(join(root, 'bench/flood-client.py')));
  await noisy.files.write('/tmp/bomb.gz', gzipSync(Buffer.alloc(16 * 2 ** 20 - 1), { level: 9 }));
  const longestMs = async (): Promise<number> => {
    process.kill(pidOf(daemon), 'SIGUSR2');
    return (JSON.parse(await readFile(pipe, 'utf8')) as { longestMs: number }).longestMs;
  };
  return { daemon, noisy, quiet, port, longestMs };
}
type World = Awaited<ReturnType<typeof world>>;

/** Floods until `enough` is done, and meanwhile runs commands beside it; resolves with the longest stretch of the loop. */
async function flood(
  { daemon, noisy, quiet, port, longestMs }: World,
  way: string,
  enough: number,
): Promise<number> {
  const execs = `/v1/sandboxes/${noisy.id}/execs`;
  const bundle = `${noisy.info.user.home}/.sallyport/ca-bundle.pem`;
  const argv = ['python3', '/tmp/flood-client.py', way, 'opened.test', String(port), bundle];
  await noisy.exec(['rm', '-f', '/tmp/told']);
  await longestMs();
  const { id } = await daemon.client.json<{ id: string }>('POST', execs, {
    body: { argv, background: true, timeout_ms: 0 },
  });
  await until(async () => {
    expect((await quiet.exec(['true'])).exitCode).toBe(0);
    return (await told(noisy)) >= enough;
  });
  const longest = await longestMs();
  await daemon.client.json('POST', `${execs}/${id}/kill`, { body: { grace_ms: 0 } });
  await daemon.client.json('GET', `${execs}/${id}/wait`);
  return longest;
}

/** How much the flood did, as it tells each second. */
async function told(noisy: Sandbox): Promise<number> {
  const { stdout } = await noisy.exec(['sh', '-c', 'cat /tmp/told 2>/dev/null || true']);
  return Number(stdout.split(' ')[1] ?? 0);
}

/** Of the daemon, so far, by the id of their sandbox. */
async function notes({ client }: TestDaemon): Promise<readonly (readonly [sandbox: string, code: string])[]> {
  const { sequence } = await client.json<{ sequence: number }>('GET', '/v1/health');
  const found: [string, string][] = [];
  for await (const event of followWireEvents(client, { since: 0 })) {
    if (event.type === 'sandbox.note') found.push([event.sandbox_id, event.code]);
    if (event.sequence >= sequence) break;
  }
  return found;
}

describe('[N22] a sandbox that floods', () => {
  it(`holds the loop of the daemon for at most ${mostStretchMs} ms of processor time, or ${mostTimesSpin} times as long as one that only burns processors`, async () => {
    const all = await world();
    const spinMs = await flood(all, 'spin', 1);
    const stretches: Record<string, number> = {};
    for (const [way, enough] of floods) stretches[way] = await flood(all, way, enough);
    const mostMs = Math.max(mostStretchMs, mostTimesSpin * spinMs);
    const over = Object.entries(stretches).filter(([, ms]) => ms > mostMs);
    expect(over, JSON.stringify({ spinMs, ...stretches })).toEqual([]);
    const told = (await notes(all.daemon)).filter(([, code]) => code === 'egress_over_budget');
    expect(new Set(told.map(([sandbox]) => sandbox))).toEqual(new Set([all.noisy.id]));
  });
});
