/** The network of a sandbox with services leads nowhere: no host on it, no way out, no name that leaves. */

import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { connect } from '../../src/engines/docker/connect.ts';
import { createContainer } from '../../src/engines/docker/containers/create.ts';
import { removeContainer } from '../../src/engines/docker/containers/remove.ts';
import { startContainer } from '../../src/engines/docker/containers/start.ts';
import { waitForExit } from '../../src/engines/docker/containers/wait.ts';
import { networkTraits } from '../../src/engines/docker/network-traits.ts';
import { dockerServiceEngine } from '../../src/engines/docker/service-engine.ts';
import { engineVersion } from '../../src/engines/docker/system/version.ts';
import type { EngineConnection } from '../../src/engines/docker/wire/connection.ts';
import { createBody } from '../../src/protocol/requests.ts';
import { Sandbox } from '../../src/sdk/sandbox.ts';
import { vulnerabilitiesOf } from '../../src/setup/doctor/vulnerable.ts';
import { daemonHome } from '../support/daemon-home.ts';
import { testEngine } from '../support/engine.ts';
import { copyTestImage, ownEngine } from '../support/own-engine.ts';
import { full } from '../support/requires.ts';
import { openSandboxes, runInSandbox } from '../support/sandboxes.ts';
import { asRoot, when } from '../support/selection.ts';

const service = (name: string, script = 'exec sleep 1000') => ({
  name,
  image: testEngine().image,
  command: ['sh', '-c', script],
});

/** Tries each place and says, for each, what came of it and after how many milliseconds. */
const dial = `
import socket, sys, time
for place in sys.argv[1:]:
    host, port = place.rsplit(' ', 1)
    began = time.monotonic()
    try:
        socket.create_connection((host, int(port)), timeout=30).close()
        print('open', end=' ')
    except OSError as error:
        print('closed', end=' ')
    print(int((time.monotonic() - began) * 1000))
`;

describe('a sandbox beside its services', () => {
  test('[A1] reaches them and nothing else: not the host, not its neighbours, not the world, and is told so at once', async () => {
    const listening = createServer((socket) => socket.destroy());
    listening.listen(0, '0.0.0.0');
    await once(listening, 'listening');
    onTestFinished(() => void listening.close());
    const { port } = listening.address() as AddressInfo;
    const box = await openSandboxes();
    const echo = `exec python3 -c "import socket; s=socket.create_server(('', 7)); exec('while 1: s.accept()')"`;
    const make = async () =>
      await box.make({
        spec: {
          required_services: [
            {
              ...service('peer', echo.replace('7)', '7777)')),
              healthcheck: {
                test: `python3 -c "import socket; socket.create_connection(('127.0.0.1', 7777), 1)"`,
                interval: '200ms',
              },
            },
          ],
        },
      });
    const [mine, other] = await Promise.all([make(), make()]);
    const addressOf = async (sandbox: typeof mine): Promise<string> =>
      (await runInSandbox(sandbox, ['getent', 'hosts', 'peer'])).stdout.data.split(' ')[0] ?? '';
    const gateway = (await addressOf(mine)).replace(/\d+$/, (last) => String((Number(last) & 0xf0) + 1));
    const hosts = Object.values(networkInterfaces())
      .flatMap((addresses) => addresses ?? [])
      .filter(({ family, internal }) => family === 'IPv4' && !internal)
      .map(({ address }) => address);
    // The positive control: they are open to whoever can reach them.
    for (const host of hosts) {
      const { connect: reach } = await import('node:net');
      const socket = reach(port, host);
      await once(socket, 'connect');
      socket.destroy();
    }
    const places = [
      'peer 7777',
      `${await addressOf(other)} 7777`,
      `${gateway} ${port}`,
      ...hosts.map((host) => `${host} ${port}`),
      '169.254.169.254 80',
      '1.2.3.4 443',
    ];
    const { stdout } = await runInSandbox(mine, ['python3', '-c', dial, ...places]);
    const answers = stdout.data
      .trim()
      .split('\n')
      .map((line) => line.split(' '));
    expect(answers.map(([how]) => how)).toEqual(['open', ...places.slice(1).map(() => 'closed')]);
    expect(Math.max(...answers.slice(1).map(([, ms]) => Number(ms)))).toBeLessThan(10_000);
    // A service has no more than the sandbox.
    const peer = mine.view().services[0]?.container_id ?? '';
    const fromPeer = await box.world.services.check(peer, ['python3', '-c', dial, ...places.slice(1)], {
      timeoutMs: 20_000,
    });
    expect(fromPeer.output).not.toContain('open');
    expect(fromPeer.output).toContain('closed');
    const status = await box.world.services.check(peer, ['cat', '/proc/1/status'], { timeoutMs: 10_000 });
    expect(status.output).toMatch(/^CapBnd:\t0000000000000000$/m);
    expect(status.output).toMatch(/^NoNewPrivs:\t1$/m);
    expect(status.output).toMatch(/^Seccomp:\t2$/m);
    // No IPv6 but the loopback's, which newer engines leave.
    const { data: ipv6 } = (await runInSandbox(mine, ['cat', '/proc/net/if_inet6'])).stdout;
    expect(ipv6.split('\n').filter((line) => line !== '' && !line.endsWith(' lo'))).toEqual([]);
    // The host has no address on the bridge: isolated from Engine 28 on, inhibited before.
    const { connection } = testEngine();
    const { engine } = await engineVersion(connection);
    const network = { method: 'GET' as const, path: `/networks/${mine.record.network?.id}` };
    const options = await connection.json<{ Options: Record<string, string> }, Record<string, string>>(
      network,
      (answer) => answer.Options,
    );
    expect(options).toMatchObject(networkTraits(engine).driverOptions);
    const bridge = `br-${mine.record.network?.id.slice(0, 12)}`;
    expect((networkInterfaces()[bridge] ?? []).filter(({ family }) => family === 'IPv4')).toEqual([]);
  });

  test('[A1] has a network of its own, also among many, without using up what the engine has', async () => {
    const box = await openSandboxes();
    const count = full ? 60 : 8;
    const { image } = testEngine();
    const made = await Promise.all(
      Array.from({ length: count }, async () => {
        const body = createBody.parse({ spec: { image, required_services: [service('peer')] } });
        const sandbox = await box.sandboxes.create(body);
        await sandbox.ready();
        return sandbox;
      }),
    );
    const subnets = made.map(({ record }) => record.network?.subnet);
    expect(new Set(subnets).size).toBe(count);
    expect(await box.world.services.networks(box.world.owner)).toHaveLength(count);
    const taken = (await box.world.services.takenSubnets()).filter((subnet) => subnet.endsWith('/28'));
    expect(new Set(taken).size).toBe(taken.length);
    await Promise.all(made.map((sandbox) => sandbox.remove({ force: true })));
    expect(await box.world.services.networks(box.world.owner)).toEqual([]);
  }, 600_000);

  test('[A1] is held to what was asked of the engine: a box without its network is not used', async () => {
    const box = await openSandboxes({
      tamper: (request) => {
        const { network: _left, ...rest } = request;
        return rest;
      },
    });
    await expect(box.make({ spec: { required_services: [service('peer')] } })).rejects.toMatchObject({
      code: 'isolation_missing',
    });
    expect(await box.world.services.networks(box.world.owner)).toEqual([]);
  });
});

/** A name server on the host's loopback, which the engine takes for the host's own. */
async function nameServer(address: string) {
  const asked: string[] = [];
  const server = createSocket('udp4');
  server.on('message', (question, { address: to, port }) => {
    asked.push(nameIn(question));
    const answer = Buffer.from(question);
    // An answer that there is no such name.
    answer.writeUInt16BE(0x8183, 2);
    server.send(answer, port, to);
  });
  server.bind(53, address);
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return { asked };
}

function nameIn(question: Buffer): string {
  const labels: string[] = [];
  for (let at = 12; (question[at] ?? 0) !== 0; at += (question[at] ?? 0) + 1) {
    labels.push(question.toString('latin1', at + 1, at + 1 + (question[at] ?? 0)));
  }
  return labels.join('.');
}

async function asksFromInternal(connection: EngineConnection): Promise<boolean> {
  const { engine } = await engineVersion(connection);
  return vulnerabilitiesOf('engine', engine).some(({ cve }) => cve === 'CVE-2024-29018');
}

async function openNetwork(connection: EngineConnection, name: string, subnet: string): Promise<string> {
  const body = { Name: name, Driver: 'bridge', IPAM: { Config: [{ Subnet: subnet }] } };
  return await connection.json<{ Id: string }, string>(
    { method: 'POST', path: '/networks/create', body },
    (answer) => answer.Id.toString(),
  );
}

when(asRoot).describe('names', () => {
  test('[A1] never leave the network of a sandbox, also where an engine lets them out of internal networks', async () => {
    const resolver = '127.0.0.77';
    const { asked } = await nameServer(resolver);
    const folder = await mkdtemp(join(tmpdir(), 'sally-dns-'));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    // The engine alone sees this as the host's resolv.conf.
    const engine = await ownEngine(async (dockerd) => {
      const program = join(folder, 'dockerd');
      await writeFile(join(folder, 'resolv.conf'), `nameserver ${resolver}\n`);
      await writeFile(
        program,
        `#!/bin/sh
exec unshare --mount --propagation private sh -c 'mount --bind ${folder}/resolv.conf /etc/resolv.conf && exec ${dockerd} "$@"' dockerd "$@"
`,
      );
      await chmod(program, 0o755);
      return program;
    });
    await engine.start();
    await copyTestImage(engine.socket);
    const connection = await connect({ kind: 'unix', path: engine.socket });
    const services = dockerServiceEngine(connection);
    const { image } = testEngine();

    // The positive control: a container that was not given our name server. Engines with CVE-2024-29018 ask for names of the
    // same network, later ones only for those of a network with a way out.
    const network = (await asksFromInternal(connection))
      ? await services.createNetwork({ name: 'control', subnet: '198.18.255.0/28', labels: {} })
      : await openNetwork(connection, 'control', '198.18.255.0/28');
    const control = await createContainer(connection, {
      body: { Image: image, Cmd: ['getent', 'hosts', 'control.test'], HostConfig: { NetworkMode: network } },
    });
    await startContainer(connection, control);
    await waitForExit(connection, control, { timeoutMs: 60_000 });
    await removeContainer(connection, control);
    await services.removeNetwork(network);
    expect(asked).toContain('control.test');
    asked.length = 0;

    const home = await daemonHome(connection);
    const daemon = await home.start();
    const box = await Sandbox.create(
      { image, requiredServices: [service('peer')] },
      { client: daemon.client },
    );
    expect((await box.exec(['getent', 'hosts', 'peer'])).exitCode).toBe(0);
    const began = performance.now();
    expect((await box.exec(['getent', 'hosts', 'secret.attacker.test'])).exitCode).not.toBe(0);
    // A resolver that does not answer is asked twice, for 5 s each.
    expect(performance.now() - began).toBeLessThan(9_000);
    const peer = box.info.services[0]?.containerId ?? '';
    const fromPeer = await services.check(peer, ['getent', 'hosts', 'service.attacker.test'], {
      timeoutMs: 20_000,
    });
    expect(fromPeer.passed).toBe(false);
    expect(asked).toEqual([]);
    await box.remove({ force: true });
  }, 120_000);
});
