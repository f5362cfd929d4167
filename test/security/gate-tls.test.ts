/** TLS of the gate against clients that are not ours: curl and openssl of this machine. */

import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type http from 'node:http';
import https from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it, onTestFinished } from 'vitest';
import { SandboxAuthority } from '../../src/gate/tls/sandbox-authority.ts';
import { upstreamTls } from '../../src/gate/tls/system-roots.ts';
import { LoopbackSession, listen, listenIntercepting } from '../support/loopback-gate.ts';
import { commandExists, requirement } from '../support/requires.ts';

const run = promisify(execFile);

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'sallyport-gate-'));
  onTestFinished(() => rmSync(path, { recursive: true }));
  return path;
}

describe.runIf(requirement('openssl', commandExists('openssl')))('certificates of the gate', () => {
  it('[R6] pass openssl’s strict verification for names, IPv4 and IPv6, and not for another CA', async () => {
    const at = folder();
    const ca = SandboxAuthority.create('box', new Date());
    const other = SandboxAuthority.create('box', new Date());
    writeFileSync(join(at, 'ca.pem'), ca.certificatePem);
    writeFileSync(join(at, 'other.pem'), other.certificatePem);
    const long = `${'a'.repeat(60)}.${'b'.repeat(60)}.test`;
    for (const [host, check] of [
      ['allowed.test', '-verify_hostname'],
      [long, '-verify_hostname'],
      ['198.51.100.7', '-verify_ip'],
      ['2001:db8::1:7', '-verify_ip'],
    ] as const) {
      writeFileSync(join(at, 'leaf.pem'), ca.leafFiles(host).cert);
      const strict = ['verify', '-x509_strict', '-purpose', 'sslserver', check, host];
      const { stdout } = await run('openssl', [
        ...strict,
        '-CAfile',
        join(at, 'ca.pem'),
        join(at, 'leaf.pem'),
      ]);
      expect(stdout).toContain('leaf.pem: OK');
      await expect(
        run('openssl', [...strict, '-CAfile', join(at, 'other.pem'), join(at, 'leaf.pem')]),
      ).rejects.toThrow(/verification failed/);
    }
  });

  it('are made in a moment', () => {
    const ca = SandboxAuthority.create('box', new Date());
    ca.leafFiles('warm.test');
    // Of the processor: how busy the machine is otherwise says nothing about it.
    const from = process.cpuUsage();
    for (let index = 0; index < 100; index++) ca.leafFiles(`host-${index}.test`);
    const { user, system } = process.cpuUsage(from);
    expect((user + system) / 1000 / 100).toBeLessThan(10);
  });
});

describe.runIf(requirement('curl', commandExists('curl')))('curl through an opened connection', () => {
  const answer: http.RequestListener = (request, response) => {
    let bytes = 0;
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
    });
    request.on('end', () => response.end(`${request.method} ${request.url} ${bytes}`));
  };

  it('[R6] speaks HTTP/1.1 and HTTP/2, uploads, is refused in words, and does not trust another CA', async () => {
    const at = folder();
    const company = SandboxAuthority.create('a company', new Date());
    const port = await listen(https.createServer(company.leafFiles('allowed.test'), answer));
    const session = new LoopbackSession({
      ports: { 'allowed.test': port },
      inspects: true,
      denies: ({ method }) => method === 'DELETE',
    });
    const ca = SandboxAuthority.create('box', new Date());
    const proxy = await listenIntercepting(session, {
      ca,
      upstreamTls: upstreamTls([company.certificatePem]),
    });
    writeFileSync(join(at, 'ca.pem'), ca.certificatePem);
    writeFileSync(join(at, 'other.pem'), SandboxAuthority.create('other', new Date()).certificatePem);
    writeFileSync(join(at, 'body'), Buffer.alloc(3_000_000, 7));
    const curl = async (...args: readonly string[]): Promise<string> => {
      const common = [
        '-sS',
        '--max-time',
        '20',
        '-x',
        `http://127.0.0.1:${proxy}`,
        '--cacert',
        join(at, 'ca.pem'),
      ];
      return (await run('curl', [...common, ...args])).stdout;
    };
    const url = 'https://allowed.test/x';
    for (const version of ['--http1.1', '--http2']) {
      const used = version === '--http2' ? '2' : '1.1';
      expect(await curl(version, '-w', ' %{http_version}', url)).toBe(`GET /x 0 ${used}`);
      expect(await curl(version, '-T', join(at, 'body'), url)).toBe('PUT /x 3000000');
      const refused = await curl(version, '-X', 'DELETE', '-w', '%{http_code}', url);
      expect(refused).toContain('sally net allow box allowed.test');
      expect(refused).toMatch(/403$/);
    }
    await expect(curl('--cacert', join(at, 'other.pem'), url)).rejects.toThrow(/certificate/);
  });
});
