/** [N22] The thread that serves connections: it ends with its daemon, a failure of it closes what it served, and the next connection has the rules that hold then. */

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Sandbox } from '../../src/sdk/sandbox.ts';
import { newFolder } from '../support/cli.ts';
import { daemonHome, type TestDaemon } from '../support/daemon-home.ts';
import { makeSandbox, pidOf } from '../support/daemon-world.ts';
import { testDns } from '../support/dns-server.ts';
import { serveSite } from '../support/package-site.ts';

const getByProxy = `
import socket, ssl, sys
host, port, roots = sys.argv[1], int(sys.argv[2]), sys.argv[3]
s = socket.create_connection(('127.0.0.1', 3128))
s.sendall(f'CONNECT {host}:{port} HTTP/1.1\\r\\nHost: {host}:{port}\\r\\n\\r\\n'.encode())
head = s.recv(4096)
if b' 200 ' not in head: sys.exit(head.split(b'\\r\\n')[0].decode() or 'closed')
t = ssl.create_default_context(cafile=roots).wrap_socket(s, server_hostname=host)
print('open', flush=True)
for line in sys.stdin:
    t.sendall(f'GET /0 HTTP/1.1\\r\\nHost: {host}:{port}\\r\\n\\r\\n'.encode())
    data = t.recv(65536)
    if not data: sys.exit('closed')
    print(data.split(b'\\r\\n')[0].decode(), flush=True)
`;

async function world() {
  const folder = await newFolder('own');
  await writeFile(join(folder, '0'), 'ok');
  const site = await serveSite(folder);
  const roots = join(folder, 'root.pem');
  await writeFile(roots, site.root);
  const dns = await testDns({ 'opened.test': ['127.0.0.1'], 'tunnel.test': ['127.0.0.1'] });
  const home = await daemonHome();
  const variables = { SALLYPORT_DNS_SERVERS: dns.server, SALLYPORT_EXTRA_CA_CERTS: roots };
  const { port } = site;
  const egress = {
    allow: [
      { host: 'opened.test', ports: [port], methods: ['GET'] },
      `tunnel.test:${port}`,
      `127.0.0.1:${port}`,
    ],
  };
  return { home, variables, site, port, egress };
}

async function prepared(daemon: TestDaemon, egress: object, root: string): Promise<Sandbox> {
  const box = await makeSandbox(daemon, { egress });
  await box.files.write('/tmp/get.py', getByProxy);
  await box.files.write('/tmp/root.pem', root);
  return box;
}

/** A connection that stays open: each call is a request on it; rejects when it was closed. */
async function connection(box: Sandbox, host: string, port: number) {
  const roots = host === 'opened.test' ? `${box.info.user.home}/.sallyport/ca-bundle.pem` : '/tmp/root.pem';
  const running = await box.spawn(['python3', '/tmp/get.py', host, String(port), roots], { stdin: true });
  const lines = linesOf(running.stdout)[Symbol.asyncIterator]();
  const next = async (): Promise<string> => {
    const { value, done } = await lines.next();
    return done === true ? `ended with ${(await running.wait()).exitCode}` : value;
  };
  expect(await next()).toBe('open');
  return async (): Promise<string> => {
    running.stdin.write('again\n');
    return await next();
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

const threadsOf = (daemon: TestDaemon): number => readdirSync(`/proc/${pidOf(daemon)}/task`).length;

describe("[N22] the gate's thread", () => {
  it('is there for sandboxes with a way out alone, and new rules reach its open connections', async () => {
    const { home, variables, site, port, egress } = await world();
    const daemon = await home.start(variables);
    await makeSandbox(daemon);
    const before = threadsOf(daemon);
    const box = await prepared(daemon, egress, site.root);
    expect(threadsOf(daemon)).toBeGreaterThan(before);
    const opened = await connection(box, 'opened.test', port);
    const tunnel = await connection(box, 'tunnel.test', port);
    expect([await opened(), await tunnel()]).toEqual(['HTTP/1.1 200 OK', 'HTTP/1.1 200 OK']);
    await box.net.deny([`tunnel.test:${port}`]);
    expect(await tunnel()).toMatch(/^ended with 1/);
    expect(await opened()).toBe('HTTP/1.1 200 OK');
  });

  it('closes its connections when it fails, and is started again with the rules that hold then', async () => {
    const { home, variables, site, port, egress } = await world();
    const crash = join(process.cwd(), 'test/support/crash-gate-thread.cjs');
    const daemon = await home.start({ ...variables, NODE_OPTIONS: `--require ${crash}` });
    const box = await prepared(daemon, egress, site.root);
    const tunnel = await connection(box, 'tunnel.test', port);
    expect(await tunnel()).toBe('HTTP/1.1 200 OK');
    process.kill(pidOf(daemon), 'SIGUSR2');
    expect(await tunnel()).toMatch(/^ended with 1/);
    await box.net.deny([`opened.test:${port}`]);
    const refused = await box.exec(['python3', '/tmp/get.py', 'opened.test', String(port), '/tmp/root.pem']);
    expect(refused.exitCode).toBe(1);
    const again = await connection(box, 'tunnel.test', port);
    expect(await again()).toBe('HTTP/1.1 200 OK');
    expect((await box.exec(['true'])).exitCode).toBe(0);
    expect(readFileSync(join(home.stateDir, 'daemon.log'), 'utf8')).toContain("in the gate's thread");
  });

  it('is gone with a daemon that is killed, and the next one serves the same sandbox', async () => {
    const { home, variables, site, port, egress } = await world();
    const first = await home.start(variables);
    const box = await prepared(first, egress, site.root);
    const tunnel = await connection(box, 'opened.test', port);
    expect(await tunnel()).toBe('HTTP/1.1 200 OK');
    first.child.kill('SIGKILL');
    await first.ended;
    expect(existsSync(`/proc/${pidOf(first)}/task`)).toBe(false);
    const { client } = await home.start(variables);
    const same = await Sandbox.connect(box.id, { client });
    const again = await connection(same, 'opened.test', port);
    expect(await again()).toBe('HTTP/1.1 200 OK');
    await same.net.deny([`opened.test:${port}`]);
    expect(await again()).toMatch(/^ended with 1|^HTTP\/1.1 403/);
  });
});
