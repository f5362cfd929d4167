import { mkdtempSync, rmSync } from 'node:fs';
import https from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import tls from 'node:tls';
import { describe, expect, it, onTestFinished } from 'vitest';
import { connectThrough, LoopbackSession, listen, listenRelay } from '../../test/support/loopback-gate.ts';
import { sandboxIdFrom } from '../protocol/ids.ts';
import { GateKeyFiles } from '../store/gate-keys.ts';
import { openSecrets } from '../store/secrets.ts';
import { BoxCredentials, requireSecrets } from './box-credentials.ts';
import { KnownValues } from './credentials/known-values.ts';
import { PhantomRegistry } from './credentials/phantoms.ts';
import { readClientHello } from './tls/client-hello.ts';
import { SandboxAuthority } from './tls/sandbox-authority.ts';
import { upstreamTls } from './tls/system-roots.ts';

const value = 'the-real-value-0123456789';
const id = sandboxIdFrom(Buffer.alloc(10, 1));

/** The secrets and keys of a daemon on a state folder; called twice it is the next daemon. */
function daemonOn(stateDir: string, company: SandboxAuthority) {
  const source = openSecrets(stateDir);
  const registry = new PhantomRegistry();
  const keys = new GateKeyFiles(stateDir);
  return {
    source,
    registry,
    values: new KnownValues(),
    keys,
    upstreamTls: upstreamTls([company.certificatePem]),
  };
}

describe('the credentials of a sandbox', () => {
  it('[R7] go on with the next daemon: the CA and the phantom that programs inside have still work', async () => {
    const stateDir = mkdtempSync(join(tmpdir(), 'sallyport-gate-'));
    onTestFinished(() => rmSync(stateDir, { recursive: true }));
    const company = SandboxAuthority.create('a company', new Date());
    const seen: (string | undefined)[] = [];
    const server = https.createServer(company.leafFiles('api.test'), (request, response) => {
      seen.push(request.headers.authorization);
      response.end('fine');
    });
    const session = new LoopbackSession({ ports: { 'api.test': await listen(server) }, inspects: true });
    const first = daemonOn(stateDir, company);
    const binding = {
      hosts: ['api.test'],
      port: 443,
      headers: ['authorization'],
      env: ['TOKEN'],
      prefix: '',
    };
    await first.source.set('ci', { binding, value });
    const before = new BoxCredentials(id, ['ci'], first);
    const trusted = before.trust(undefined, '/etc/sallyport').files[0]?.content ?? '';
    const phantom = before.credentials.env()['TOKEN'] ?? '';

    const after = new BoxCredentials(id, ['ci'], daemonOn(stateDir, company));
    expect(after.needsInspection({ host: 'api.test', port: 443, isAddress: false })).toBe(true);
    expect(after.needsInspection({ host: 'other.test', port: 443, isAddress: false })).toBe(false);
    const proxy = await listenRelay(session, {
      entrance: 'connect',
      scheme: 'http',
      ...after.relayParts(),
      onConnect: async (authority, client) => {
        client.write('HTTP/1.1 200 OK\r\n\r\n');
        const hello = await readClientHello(client);
        const decision = session.decide({ entrance: 'connect', destination: authority, scheme: 'https' });
        if ('notTls' in hello || !decision.allowed) return;
        const { signal } = new AbortController();
        await after.intercept(client, hello, session, { decision, authority, signal });
      },
    });
    const socket = await connectThrough(proxy, 'api.test:443');
    const secured = tls.connect({ socket, servername: 'api.test', ca: trusted });
    secured.write(
      `GET / HTTP/1.1\r\nHost: api.test\r\nConnection: close\r\nAuthorization: Bearer ${phantom}\r\n\r\n`,
    );
    const answer = await new Promise<string>((resolve, reject) => {
      let text = '';
      secured.on('data', (chunk: Buffer) => {
        text += chunk.toString();
      });
      secured.on('end', () => resolve(text));
      secured.on('error', reject);
    });
    expect(answer).toMatch(/^HTTP\/1\.1 200/);
    expect(seen).toEqual([`Bearer ${value}`]);
  });

  it('[R7] that are not there are refused before anything is made', () => {
    const stateDir = mkdtempSync(join(tmpdir(), 'sallyport-gate-'));
    onTestFinished(() => rmSync(stateDir, { recursive: true }));
    const source = openSecrets(stateDir);
    expect(() => requireSecrets(['absent'], source)).toThrow(/there is no secret absent/);
    expect(() => requireSecrets([], source)).not.toThrow();
  });
});
