/**
 * [N22] All sandboxes share the thread of the gate. One that floods it waits, and another one's own requests go on. A busy machine makes
 * every answer late, so the same requests beside a sandbox that only computes are the measure.
 */

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Sandbox } from '../../src/sdk/sandbox.ts';
import { newFolder } from '../support/cli.ts';
import { daemonHome } from '../support/daemon-home.ts';
import { makeSandbox } from '../support/daemon-world.ts';
import { testDns } from '../support/dns-server.ts';
import { serveSite } from '../support/package-site.ts';
import { until } from '../support/until.ts';

/** Many connections at once: WAY HOST PORT ROOTS COUNT. Writes a line to /tmp/told when it is under way. */
const floodClient = `
import socket, ssl, struct, sys, threading, time
way, host, port, roots, count = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4], int(sys.argv[5])
done = [0]

def connected():
    sock = socket.create_connection(('127.0.0.1', 3128))
    sock.sendall(b'CONNECT %s:%d HTTP/1.1\\r\\nHost: %s:%d\\r\\n\\r\\n' % (host.encode(), port, host.encode(), port))
    if b' 200 ' not in sock.recv(4096): raise OSError('refused')
    return sock

def opened(protocol):
    context = ssl.create_default_context(cafile=roots)
    context.set_alpn_protocols([protocol])
    return context.wrap_socket(connected(), server_hostname=host)

def frame(kind, flags, stream, payload=b''):
    return struct.pack('>I', len(payload))[1:] + bytes([kind, flags]) + struct.pack('>I', stream) + payload

def drain(sock):
    try:
        while sock.recv(65536): pass
    except OSError: pass

def frames(payload):
    sock = opened('h2')
    sock.sendall(b'PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n' + frame(4, 0, 0))
    threading.Thread(target=drain, args=(sock,), daemon=True).start()
    while True:
        sock.sendall(payload)
        done[0] += 1

def answers():
    sock = opened('http/1.1')
    while True:
        sock.sendall(b'GET /big HTTP/1.1\\r\\nHost: %s:%d\\r\\n\\r\\n' % (host.encode(), port))
        if not sock.recv(65536).startswith(b'HTTP/1.1 200 '): raise OSError('refused')
        left = 8 * 2**20
        while left > 65536: left -= len(sock.recv(65536))
        while sock.recv(65536)[-4:] != b'last': pass
        done[0] += 1

def one():
    while True:
        try:
            if way == 'windows': frames(frame(8, 0, 0, struct.pack('>I', 1)) * 4000)
            elif way == 'pings': frames(frame(6, 0, 0, b'12345678') * 4000)
            elif way == 'settings': frames(frame(4, 0, 0) * 4000)
            elif way == 'priorities': frames(frame(2, 0, 1, struct.pack('>IB', 0, 1)) * 4000)
            elif way == 'answers': answers()
            elif way == 'spin': done[0] += 1
            elif way == 'handshakes':
                opened('http/1.1').close()
                done[0] += 1
        except OSError:
            time.sleep(0.02)

for _ in range(count): threading.Thread(target=one, daemon=True).start()
while True:
    time.sleep(0.2)
    with open('/tmp/told', 'w') as file: file.write(str(done[0]))
`;

/** Seconds of each of so many requests, each on a connection of its own. */
const askClient = `
import socket, ssl, sys, time
host, port, roots, count = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
context = ssl.create_default_context(cafile=roots)
took = []
for _ in range(count):
    began = time.monotonic()
    sock = socket.create_connection(('127.0.0.1', 3128))
    sock.sendall(f'CONNECT {host}:{port} HTTP/1.1\\r\\nHost: {host}:{port}\\r\\n\\r\\n'.encode())
    said = sock.recv(4096)
    assert b' 200 ' in said, said
    opened = context.wrap_socket(sock, server_hostname=host)
    opened.sendall(f'GET /0 HTTP/1.1\\r\\nHost: {host}:{port}\\r\\n\\r\\n'.encode())
    said = opened.recv(65536)
    assert said.startswith(b'HTTP/1.1 200 '), said
    opened.close()
    took.append(time.monotonic() - began)
print(took)
`;

async function world() {
  const folder = await newFolder('own');
  await writeFile(join(folder, '0'), 'ok');
  await writeFile(join(folder, 'big'), Buffer.concat([Buffer.alloc(8 * 2 ** 20, 'x'), Buffer.from('last')]));
  const site = await serveSite(folder);
  const roots = join(folder, 'root.pem');
  await writeFile(roots, site.root);
  const dns = await testDns({ 'opened.test': ['127.0.0.1'] });
  const home = await daemonHome();
  const daemon = await home.start({ SALLYPORT_DNS_SERVERS: dns.server, SALLYPORT_EXTRA_CA_CERTS: roots });
  const { port } = site;
  const allow = [{ host: 'opened.test', ports: [port], methods: ['GET'] }, `127.0.0.1:${port}`];
  const noisy = await makeSandbox(daemon, { egress: { allow } });
  const quiet = await makeSandbox(daemon, { egress: { allow } });
  await noisy.files.write('/tmp/flood.py', floodClient);
  await quiet.files.write('/tmp/ask.py', askClient);
  return { noisy, quiet, port };
}

/** The middle of how long the requests took. */
async function askedMs(quiet: Sandbox, port: number, way: string): Promise<number> {
  const bundle = `${quiet.info.user.home}/.sallyport/ca-bundle.pem`;
  const asked = await quiet.exec(['python3', '/tmp/ask.py', 'opened.test', String(port), bundle, '15']);
  expect(asked.stderr, way).toBe('');
  const took = (JSON.parse(asked.stdout) as number[]).sort((a, b) => a - b);
  return (took[7] ?? 0) * 1000;
}

describe('[N22] a sandbox that floods the gate', () => {
  it('holds up no request of another one', async () => {
    const { noisy, quiet, port } = await world();
    const bundle = `${noisy.info.user.home}/.sallyport/ca-bundle.pem`;
    const found: Record<string, number> = {};
    for (const way of ['spin', 'handshakes', 'windows', 'priorities', 'pings', 'settings', 'answers']) {
      await noisy.exec(['rm', '-f', '/tmp/told']);
      const argv = ['python3', '/tmp/flood.py', way, 'opened.test', String(port), bundle, '48'];
      const flood = await noisy.spawn(argv);
      await until(async () => Number(await noisy.files.readText('/tmp/told').catch(() => '0')) > 0);
      found[way] = await askedMs(quiet, port, way);
      await flood.kill();
      await flood.wait();
    }
    // Before each had a share: 864 ms by handshakes, where it is 38 ms without a flood.
    const mostMs = 400 + 8 * (found['spin'] ?? 0);
    const over = Object.entries(found).filter(([, ms]) => ms > mostMs);
    expect(over, JSON.stringify(found)).toEqual([]);
  });
});
