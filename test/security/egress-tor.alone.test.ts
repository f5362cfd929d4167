/** [G11] By Tor: a real Tor network of the test on loopback, and the client that the daemon starts. No name is asked for on this machine. */

import { once } from 'node:events';
import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { TorClient } from '../../src/gate/tor/tor-client.ts';
import type { SallyEvent } from '../../src/protocol/events.ts';
import type { SandboxWorld } from '../../src/sandboxes/world.ts';
import { testDaemon } from '../support/daemon.ts';
import { openDns, type TestDns, testDns } from '../support/dns-server.ts';
import { entrances, helloServer, tryAll, tryOne } from '../support/gate-box.ts';
import { commandExists, requirement } from '../support/requires.ts';
import { openSandboxes } from '../support/sandboxes.ts';
import { realClients, when } from '../support/selection.ts';
import { startTorNetwork, type TorNetwork } from '../support/tor-network.ts';

const hasTor = requirement('tor', commandExists('tor') && commandExists('tor-gencert'));
const programFolders = ['/usr/bin', '/usr/sbin', '/usr/local/bin'];

async function ownFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'sallyport-tor-client-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

async function torWith(userSettings: string, lingerMs?: number) {
  const folder = join(await ownFolder(), 'tor');
  const parts = { folder, programFolders, userSettings };
  const tor = new TorClient(lingerMs === undefined ? parts : { ...parts, lingerMs });
  onTestFinished(() => tor.close());
  return { tor, folder };
}

/** A second control connection to a Tor client: it is closed when the process ends. */
async function controlOf(folder: string) {
  const socket = connect({ path: join(folder, 'control') });
  socket.on('error', () => {});
  onTestFinished(() => void socket.destroy());
  const lines = createInterface({ input: socket })[Symbol.asyncIterator]();
  const ask = async (command: string): Promise<readonly string[]> => {
    socket.write(`${command}\r\n`);
    const answer: string[] = [];
    for (;;) {
      const { value, done } = await lines.next();
      if (done === true) throw new Error('Tor has gone');
      if (/^250 /.test(value)) return answer;
      answer.push(value);
    }
  };
  const closed = once(socket, 'close');
  await ask('AUTHENTICATE');
  const pid = Number(/pid=(\d+)/.exec((await ask('GETINFO process/pid')).join())?.[1]);
  return { ask, closed, pid };
}

/** Of one sandbox so far. */
async function eventsOf({ store }: SandboxWorld, id: string): Promise<readonly SallyEvent[]> {
  const found: SallyEvent[] = [];
  const { events } = store;
  for await (const event of events.follow(0, AbortSignal.timeout(60_000))) {
    if (event.sandbox_id === id) found.push(event);
    if (event.sequence >= events.sequence) break;
  }
  return found;
}

when(realClients, hasTor).describe('[G11] egress.upstream: tor', () => {
  let network: TorNetwork | undefined;
  /** Of the exit, at the other end of the network. */
  let farDns: (TestDns & { readonly close: () => void }) | undefined;

  beforeAll(async () => {
    farDns = await openDns({ 'good.test': ['127.0.0.1'] });
    network = await startTorNetwork(farDns.server);
  });
  afterAll(async () => {
    await network?.stop();
    farDns?.close();
  });

  it('leaves by a Tor network through every entrance, and names are resolved at its exit alone', async () => {
    const hello = await helloServer();
    const nearDns = await testDns({ 'good.test': ['127.0.0.1'] });
    const { tor, folder } = await torWith(network?.clientSettings ?? '', 0);
    const { make, world } = await openSandboxes({ dnsServers: [nearDns.server], tor });
    const egress = { upstream: 'tor', allow: [`good.test:${hello.port}`] };
    const [box, other] = await Promise.all([make({ spec: { egress } }), make({ spec: { egress } })]);
    const control = await controlOf(folder);
    expect((await stat(folder)).mode & 0o777).toBe(0o700);
    const progress = (await eventsOf(world, box.id)).filter(({ type }) => type === 'sandbox.progress');
    expect(progress.at(-1)).toMatchObject({ step: 'tor', current: 100, total: 100 });

    const results = await tryAll(
      box,
      entrances.flatMap((via) => [
        { via, host: 'good.test', port: hello.port },
        { via, host: 'evil.test', port: hello.port },
      ]),
    );
    const words = results.map(({ what }) => what);
    expect(words.filter((_, at) => at % 2 === 0)).toEqual(entrances.map(() => 'reached'));
    expect(words.filter((_, at) => at % 2 === 1)).not.toContain('reached');
    expect(hello.seen).toHaveLength(entrances.length);
    expect(nearDns.asked).toEqual([]);
    expect(new Set(farDns?.asked)).toEqual(new Set(['good.test']));

    // No circuit is shared by two sandboxes.
    expect(await tryOne(other, { via: 'connect', host: 'good.test', port: hello.port })).toBe('reached');
    const users = (await control.ask('GETINFO circuit-status'))
      .map((line) => /SOCKS_USERNAME="([^"]*)"/.exec(line)?.[1])
      .filter((user) => user !== undefined);
    expect(new Set(users)).toEqual(new Set([box.id, other.id]));

    // With the last sandbox Tor goes.
    await box.remove({ force: true });
    await other.remove({ force: true });
    await control.closed;
  });

  when(realClients).it('starts Tor again after its death, and says so', async () => {
    const hello = await helloServer();
    const { tor, folder } = await torWith(network?.clientSettings ?? '');
    const { make, world } = await openSandboxes({ tor });
    const box = await make({ spec: { egress: { upstream: 'tor', allow: [`good.test:${hello.port}`] } } });
    const attempt = { via: 'connect', host: 'good.test', port: hello.port } as const;
    expect(await tryOne(box, attempt)).toBe('reached');
    const first = await controlOf(folder);
    process.kill(first.pid, 'SIGKILL');
    await first.closed;
    expect(await tryOne(box, attempt)).toBe('reached');
    expect((await controlOf(folder)).pid).not.toBe(first.pid);
    const notes = (await eventsOf(world, box.id)).filter((event) => event.type === 'sandbox.note');
    expect(notes).toContainEqual(expect.objectContaining({ code: 'tor_ended' }));
  });

  when(realClients).it('ends with the daemon, however that ends', async () => {
    const hello = await helloServer();
    const nearDns = await testDns({ 'good.test': ['127.0.0.1'] });
    const daemon = await testDaemon({
      SALLYPORT_TOR_CONFIG: network?.clientSettings ?? '',
      SALLYPORT_DNS_SERVERS: nearDns.server,
    });
    const egress = { upstream: 'tor', allow: [`good.test:${hello.port}`] };
    const box = await daemon.make({ egress });
    const fetch = `exec 3<>/dev/tcp/127.0.0.1/3128; printf 'GET http://good.test:${hello.port}/ HTTP/1.1\\r\\nHost: good.test:${hello.port}\\r\\nConnection: close\\r\\n\\r\\n' >&3; cat <&3`;
    expect((await box.exec(['bash', '-c', fetch])).stdout).toContain('hello from the test');
    const control = await controlOf(join(daemon.stateDir, 'tor'));
    await daemon.kill();
    await control.closed;
    // The next daemon finds the sandbox, and gives it a Tor client again.
    expect((await box.exec(['bash', '-c', fetch])).stdout).toContain('hello from the test');
    const next = await controlOf(join(daemon.stateDir, 'tor'));
    await daemon.client.shutdown({ keep: false });
    await next.closed;
    expect(nearDns.asked).toEqual([]);
  });
});

describe('[G11] a Tor client that cannot be used', () => {
  it('is refused before anything is made where the program is missing', async () => {
    const tor = new TorClient({ folder: await ownFolder(), programFolders: [await ownFolder()] });
    const { make, sandboxes } = await openSandboxes({ tor });
    await expect(make({ spec: { egress: { upstream: 'tor' } } })).rejects.toMatchObject({
      code: 'tor_missing',
      advice: expect.stringContaining('apt-get install tor'),
    });
    expect(sandboxes.list()).toEqual([]);
    // One that somebody else runs needs no program.
    const box = await make({ spec: { egress: { upstream: 'tor://127.0.0.1:1' } } });
    expect(box.state).toBe('READY');
  });

  describe.runIf(hasTor)('with the program', () => {
    const user = { sandbox: 'sb', progress: () => {}, ended: () => {} };

    it('fails with its own words, and the sandbox with it', async () => {
      const settings = join(await ownFolder(), 'torrc');
      await writeFile(settings, 'NoSuchSetting 1\n');
      const { tor } = await torWith(settings);
      const { make } = await openSandboxes({ tor });
      await expect(make({ spec: { egress: { upstream: 'tor' } } })).rejects.toMatchObject({
        code: 'tor_failed',
        message: expect.stringContaining('NoSuchSetting'),
      });
    });

    it('says how far it came where the network cannot be reached', async () => {
      const settings = join(await ownFolder(), 'torrc');
      const nobody = `DirAuthority nobody 127.0.0.1:1 ${'A'.repeat(40)}`;
      await writeFile(settings, `TestingTorNetwork 1\n${nobody}\n`);
      const { tor } = await torWith(settings);
      const lease = tor.lease(user);
      await expect(lease.socks(3000)).rejects.toMatchObject({
        code: 'tor_not_ready',
        details: { percent: expect.any(Number) },
        advice: expect.stringContaining('bridges'),
      });
    });
  });
});
