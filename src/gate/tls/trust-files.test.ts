import { execFile } from 'node:child_process';
import { createHash, X509Certificate } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import https from 'node:https';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import tls from 'node:tls';
import { promisify } from 'node:util';
import { describe, expect, it, onTestFinished } from 'vitest';
import { listen } from '../../../test/support/loopback-gate.ts';
import { javaTruststore } from './java-truststore.ts';
import { SandboxAuthority } from './sandbox-authority.ts';
import { trustFiles } from './trust-files.ts';

const run = promisify(execFile);

interface TrustedEntry {
  readonly alias: string;
  readonly at: Date;
  readonly certificate: X509Certificate;
}

/** Takes JKS apart as Java's own reader does: the digest first, then entry by entry, and nothing may be left. */
function readTruststore(store: Buffer, password: string): readonly TrustedEntry[] {
  const content = store.subarray(0, -20);
  const key = Buffer.concat([...password].map((letter) => Buffer.from([0, letter.charCodeAt(0)])));
  const digest = createHash('sha1').update(key).update('Mighty Aphrodite').update(content).digest();
  if (!digest.equals(store.subarray(-20))) throw new Error('the digest is wrong');
  let at = 0;
  const take = (bytes: number): Buffer => {
    if (at + bytes > content.length) throw new Error('the store ends too early');
    at += bytes;
    return content.subarray(at - bytes, at);
  };
  const word = (): string => take(take(2).readUInt16BE()).toString('utf8');
  expect([take(4).toString('hex'), take(4).readUInt32BE()]).toEqual(['feedfeed', 2]);
  const entries = Array.from({ length: take(4).readUInt32BE() }, () => {
    expect(take(4).readUInt32BE()).toBe(2);
    const alias = word();
    const time = new Date(Number(take(8).readBigInt64BE()));
    expect(word()).toBe('X.509');
    return { alias, at: time, certificate: new X509Certificate(take(take(4).readUInt32BE())) };
  });
  expect(at).toBe(content.length);
  return entries;
}

describe('trust in the CA of a sandbox', () => {
  it('[R7] is added to the roots of the image, and the key is in none of the files', () => {
    const ca = SandboxAuthority.create('box', new Date());
    const image = SandboxAuthority.create('a root of the image', new Date()).certificatePem;
    const { files, env } = trustFiles(image, ca, '/etc/sallyport');
    const bundle = String(files.find(({ path }) => path === env['SSL_CERT_FILE'])?.content);
    expect(bundle).toBe(`${image}${ca.certificatePem}`);
    expect(tls.createSecureContext({ ca: bundle })).toBeDefined();
    expect(Object.values(env).filter((value) => value.startsWith('/'))).toHaveLength(11);
    for (const { content } of files) expect(Buffer.from(content).toString('latin1')).not.toContain('PRIVATE');
    const alone = trustFiles(undefined, ca, '/x').files.filter(({ path }) => path.endsWith('.pem'));
    expect(alone.map(({ content }) => content)).toEqual([ca.certificatePem, ca.certificatePem]);
  });

  it('[R7] is a truststore of every root and nothing else, with the digest that Java asks for', () => {
    const now = new Date('2026-01-02T03:04:05Z');
    const roots = ['a root of the image', 'box'].map(
      (name) => SandboxAuthority.create(name, now).certificatePem,
    );
    const read = readTruststore(javaTruststore(`# first\n${roots.join('\n# another\n')}`, now), 'changeit');
    expect(read.map(({ certificate }) => certificate.fingerprint256)).toEqual(
      roots.map((pem) => new X509Certificate(pem).fingerprint256),
    );
    expect(read.map(({ alias, at }) => [alias, at.toISOString()])).toEqual([
      ['root-0', now.toISOString()],
      ['root-1', now.toISOString()],
    ]);
    expect(readTruststore(javaTruststore('', now), 'changeit')).toEqual([]);
    expect(() => readTruststore(javaTruststore(roots[0] ?? '', now), 'another')).toThrow(/digest/);
  });

  it('[R7] works for a program that knows nothing but its variables', async () => {
    const at = mkdtempSync(join(tmpdir(), 'sallyport-trust-'));
    onTestFinished(() => rmSync(at, { recursive: true }));
    const ca = SandboxAuthority.create('box', new Date());
    const { files, env } = trustFiles(undefined, ca, join(at, 'trust'));
    for (const { path, content } of files) {
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, content);
    }
    expect(readFileSync(env['NODE_EXTRA_CA_CERTS'] ?? '', 'utf8')).toBe(ca.certificatePem);
    const server = https.createServer(ca.leafFiles('127.0.0.1'), (_request, response) =>
      response.end('trusted'),
    );
    const port = await listen(server);
    const program = `fetch('https://127.0.0.1:${port}/').then((r) => r.text()).then(console.log, (e) => console.log(e.cause.code))`;
    const ask = async (variables: Readonly<Record<string, string>>): Promise<string> =>
      (await run(process.execPath, ['-e', program], { env: variables })).stdout.trim();
    expect(await ask(env)).toBe('trusted');
    expect(await ask({})).toMatch(/UNABLE_TO_VERIFY|SELF_SIGNED|UNABLE_TO_GET/);
  });
});
