/** [G11] With an upstream everything leaves by it, names included: a resolver that is there is never asked. */

import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { KnownValues } from '../../src/gate/credentials/known-values.ts';
import { PhantomRegistry } from '../../src/gate/credentials/phantoms.ts';
import { upstreamTls } from '../../src/gate/tls/system-roots.ts';
import type { SpecInput } from '../../src/protocol/spec.ts';
import type { Sandbox } from '../../src/sandboxes/sandbox.ts';
import { testDns } from '../support/dns-server.ts';
import { entrances, helloServer, tryAll, tryOne } from '../support/gate-box.ts';
import { openSandboxes, runInSandbox } from '../support/sandboxes.ts';

interface Recorder {
  readonly port: number;
  /** What it was asked to connect to. */
  readonly asked: string[];
  /** Who asked: `user:password`, or nothing. */
  readonly logins: (string | undefined)[];
  /** Nobody listens any more, and whoever is connected is cut off. */
  readonly die: () => Promise<void>;
}

/** A proxy of the test: whatever name it is given leads to one server of the test. With `login` it takes that one and no other. */
async function recorder(kind: 'socks5' | 'http', to: number, login?: string): Promise<Recorder> {
  const asked: string[] = [];
  const logins: (string | undefined)[] = [];
  const sockets = new Set<Socket>();
  const answer = kind === 'http' ? answerHttp : answerSocks;
  const server = createServer((client) => {
    sockets.add(client);
    client.on('error', () => {});
    answer(client, {
      to,
      isWelcome: (given) => {
        logins.push(given);
        return login === undefined || given === login;
      },
      ask: (name) => void asked.push(name),
    }).catch(() => client.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const die = async (): Promise<void> => {
    for (const socket of sockets) socket.destroy();
    if (server.listening) await new Promise((resolve) => server.close(resolve));
  };
  onTestFinished(die);
  return { port: (server.address() as AddressInfo).port, asked, logins, die };
}

interface Manners {
  readonly to: number;
  readonly isWelcome: (login: string | undefined) => boolean;
  readonly ask: (name: string) => void;
}

const nextData = async (client: Socket): Promise<Buffer> => (await once(client, 'data'))[0] as Buffer;

async function answerHttp(client: Socket, { to, isWelcome, ask }: Manners): Promise<void> {
  const head = (await nextData(client)).toString('latin1');
  const basic = /^proxy-authorization: Basic (\S+)\r$/im.exec(head)?.[1];
  if (!isWelcome(basic && Buffer.from(basic, 'base64').toString())) {
    client.end('HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\n\r\n');
    return;
  }
  ask(/^CONNECT (\S+)/.exec(head)?.[1] ?? 'something else');
  join(client, to, 'HTTP/1.1 200 OK\r\n\r\n');
}

/** Each message of it comes in one piece on loopback. */
async function answerSocks(client: Socket, { to, isWelcome, ask }: Manners): Promise<void> {
  const takesLogin = (await nextData(client)).includes(2, 2);
  if (!takesLogin && !isWelcome(undefined)) {
    // None of the ways to log in that were offered will do.
    client.end(Buffer.from([5, 255]));
    return;
  }
  client.write(Buffer.from([5, takesLogin ? 2 : 0]));
  if (takesLogin) {
    const given = await nextData(client);
    const end = 2 + (given[1] ?? 0);
    const isRight = isWelcome(`${given.subarray(2, end)}:${given.subarray(end + 1)}`);
    client.write(Buffer.from([1, isRight ? 0 : 1]));
    if (!isRight) return;
  }
  const request = await nextData(client);
  const name =
    request[3] === 3
      ? request.subarray(5, 5 + (request[4] ?? 0)).toString('latin1')
      : `address ${request[3]}`;
  ask(`${name}:${request.readUInt16BE(request.length - 2)}`);
  join(client, to, Buffer.from([5, 0, 0, 1, 0, 0, 0, 0, 0, 0]));
}

function join(client: Socket, port: number, answer: string | Buffer): void {
  const target = connect(port, '127.0.0.1', () => {
    client.write(answer);
    client.pipe(target).pipe(client);
  });
  target.on('error', () => client.destroy());
}

describe('[G11] an upstream', () => {
  it.each([
    ['tor', 'socks5'],
    ['socks5', 'socks5'],
    ['http', 'http'],
  ] as const)('%s gets every name as it is, and nothing is resolved here', async (scheme, kind) => {
    const hello = await helloServer();
    const proxy = await recorder(kind, hello.port);
    const dns = await testDns({ 'good.test': ['127.0.0.1'] });
    const { make } = await openSandboxes({ dnsServers: [dns.server] });
    const egress = { upstream: `${scheme}://127.0.0.1:${proxy.port}`, allow: ['good.test'] };
    const box = await make({ spec: { egress } });
    const results = await tryAll(
      box,
      entrances
        .flatMap((via) => [
          { via, host: 'good.test', port: 80 },
          { via, host: 'evil.test', port: 80 },
          { via, host: '10.0.0.1', port: 80 },
        ])
        .filter(({ via, host }) => via !== 'transparent' || host !== '10.0.0.1'),
    );
    const words = results.map(({ what }) => what);
    expect(words.filter((what) => what === 'reached')).toHaveLength(entrances.length);
    expect(words.filter((what) => what !== 'reached')).toHaveLength(7);
    expect(new Set(proxy.asked)).toEqual(new Set(['good.test:80']));
    expect(dns.asked).toEqual([]);
  });

  it('that is not there is a failure, and never a way round it', async () => {
    const hello = await helloServer();
    const dns = await testDns({ 'good.test': ['127.0.0.1'] });
    const { make } = await openSandboxes({ dnsServers: [dns.server] });
    const allow = [`good.test:${hello.port}`, `127.0.0.1:${hello.port}`];
    const box = await make({ spec: { egress: { upstream: 'tor://127.0.0.1:1', allow } } });
    const [result] = await tryAll(box, [{ via: 'connect', host: 'good.test', port: hello.port }]);
    expect(result?.what).toBe('denied unreachable');
    expect(hello.seen).toEqual([]);
    expect(dns.asked).toEqual([]);
    const wrong = make({ spec: { egress: { upstream: 'ftp://127.0.0.1:1' } } });
    await expect(wrong).rejects.toMatchObject({ code: 'egress_rule_invalid' });
  });

  it.each(['socks5', 'http'] as const)(
    '%s that dies is a failure, and so is all that comes after',
    async (kind) => {
      const hello = await helloServer();
      const proxy = await recorder(kind, hello.port);
      const dns = await testDns({ 'good.test': ['127.0.0.1'] });
      const { make } = await openSandboxes({ dnsServers: [dns.server] });
      const allow = [`good.test:${hello.port}`, `127.0.0.1:${hello.port}`];
      const upstream = `${kind}://127.0.0.1:${proxy.port}`;
      const box = await make({ spec: { egress: { upstream, allow } } });
      const attempt = { via: 'connect', host: 'good.test', port: hello.port } as const;
      expect(await tryOne(box, attempt)).toBe('reached');
      await proxy.die();
      expect(await tryOne(box, attempt)).toBe('denied unreachable');
      expect(hello.seen).toHaveLength(1);
      expect(dns.asked).toEqual([]);
    },
  );
});

/** A secret that is bound to the proxy at this port of loopback. */
function proxyLogin(value: string, port: number) {
  const binding = {
    hosts: ['127.0.0.1'],
    port,
    headers: ['proxy-authorization'],
    env: [],
    prefix: '',
  };
  const source = {
    binding: (name: string) => (name === 'corp' ? binding : undefined),
    budget: () => undefined,
    boundTo: () => [],
    value: async () => value,
  };
  return { source, registry: new PhantomRegistry(), values: new KnownValues(), upstreamTls: upstreamTls([]) };
}

describe('[G11] an upstream that wants a login', () => {
  it.each(['socks5', 'http'] as const)('%s gets the secret that is bound to it', async (kind) => {
    const hello = await helloServer();
    const proxy = await recorder(kind, hello.port, 'me:correct-horse');
    const { make } = await openSandboxes({ secrets: proxyLogin('me:correct-horse', proxy.port) });
    const upstream = `${kind}://127.0.0.1:${proxy.port}`;
    const allow = ['good.test'];
    const box = await make({ spec: { egress: { upstream, upstream_secret: 'corp', allow } } });
    expect(await tryOne(box, { via: 'connect', host: 'good.test', port: 80 })).toBe('reached');
    expect(new Set(proxy.logins)).toEqual(new Set(['me:correct-horse']));
    // Not a word of it is inside.
    const { stdout } = await runInSandbox(box, ['sh', '-c', 'env; cat /proc/*/environ']);
    expect(stdout.data.toString()).not.toContain('correct-horse');

    const without = await make({ spec: { egress: { upstream, allow } } });
    const [refused] = await tryAll(without, [{ via: 'connect', host: 'good.test', port: 80 }]);
    expect(refused?.what).toBe('denied unreachable');
    const log = await lastError(without);
    expect(log).toContain(`the upstream at 127.0.0.1:${proxy.port} wants a login`);
  });

  it.each(['socks5', 'http'] as const)('%s that does not take it is a failure that says so', async (kind) => {
    const hello = await helloServer();
    const proxy = await recorder(kind, hello.port, 'me:another-one');
    const { make } = await openSandboxes({ secrets: proxyLogin('me:correct-horse', proxy.port) });
    const egress = {
      upstream: `${kind}://127.0.0.1:${proxy.port}`,
      upstream_secret: 'corp',
      allow: ['good.test'],
    };
    const box = await make({ spec: { egress } });
    expect(await tryOne(box, { via: 'connect', host: 'good.test', port: 80 })).toBe('denied unreachable');
    const error = await lastError(box);
    expect(error).toContain('does not take the login that it was given');
    expect(error).not.toContain('correct-horse');
    expect(hello.seen).toEqual([]);
  });

  it('is refused before anything is made where the secret is not there, is bound elsewhere, or stands in the spec', async () => {
    const { make, sandboxes } = await openSandboxes({ secrets: proxyLogin('me:correct-horse', 3128) });
    const made = (egress: NonNullable<SpecInput['egress']>) => make({ spec: { egress } });
    const upstream = 'http://127.0.0.1:3128';
    await expect(made({ upstream, upstream_secret: 'none' })).rejects.toMatchObject({
      code: 'secret_not_found',
    });
    // A project that was cloned names a proxy of its own, and a secret of its user.
    await expect(made({ upstream: 'http://127.0.0.1:3129', upstream_secret: 'corp' })).rejects.toMatchObject({
      code: 'refused_by_policy',
    });
    await expect(made({ upstream: 'http://me:correct-horse@127.0.0.1:3128' })).rejects.toMatchObject({
      code: 'egress_rule_invalid',
      message: expect.not.stringContaining('correct-horse'),
    });
    for (const way of ['tor', 'direct', 'tor://127.0.0.1:9050']) {
      await expect(made({ upstream: way, upstream_secret: 'corp' })).rejects.toMatchObject({
        code: 'egress_rule_invalid',
      });
    }
    expect(sandboxes.list()).toEqual([]);
  });
});

/** What the log says of the last connection. */
async function lastError(box: Sandbox): Promise<string> {
  let last = '';
  for await (const { error } of box.netLog({ follow: false, signal: new AbortController().signal })) {
    last = error ?? last;
  }
  return last;
}
