import http from 'node:http';
import { describe, expect, it } from 'vitest';
import { listen, listenRelay, talk } from '../../../test/support/loopback-gate.ts';
import { parseAddress } from '../../policy/egress/address.ts';
import { parsePolicy, type WrittenPolicy } from '../../policy/egress/policy.ts';
import { GateSession } from '../session.ts';

/** A server that says what it was asked, behind the gate with real rules. */
async function world(rulesFor: (port: number) => WrittenPolicy) {
  const server = http.createServer(({ method, url, headers }, response) => {
    response.end(JSON.stringify({ method, url, headers }));
  });
  const port = await listen(server);
  const address = parseAddress('127.0.0.1');
  if (address === undefined) throw new Error('no address');
  const session = new GateSession({
    sandbox: 'box',
    policy: parsePolicy(rulesFor(port)),
    proxy: undefined,
    resolver: { resolve: async () => [address] },
    needsInspection: () => false,
    written: () => {},
  });
  const proxy = await listenRelay(session, { entrance: 'http', scheme: 'http' });
  return async (field: string, path = '/public/x'): Promise<string> =>
    await talk(
      proxy,
      `GET http://x.test:${port}${path} HTTP/1.1\r\nHost: x.test:${port}\r\nConnection: close\r\n${field}\r\n\r\n`,
    );
}

const own = (port: number): string => `127.0.0.1:${port}`;
const rules: Readonly<Record<string, (port: number) => WrittenPolicy>> = {
  'allows paths': (port) => ({
    allow: [{ host: 'x.test', ports: [port], paths: ['/public/**'] }, own(port)],
  }),
  'denies paths': (port) => ({
    allow: [`x.test:${port}`, own(port)],
    deny: [{ host: 'x.test', paths: ['/admin/**'] }],
  }),
  'allows methods': (port) => ({ allow: [{ host: 'x.test', ports: [port], methods: ['GET'] }, own(port)] }),
};

describe.each(Object.entries(rules))('where a rule %s', (_name, rulesFor) => {
  it('[R6] a header that replaces path or method is refused, in any spelling of its name', async () => {
    const ask = await world(rulesFor);
    for (const field of [
      'X-Original-URL: /admin/secret',
      'x-original-url: /admin/secret',
      'X_Original_URL: /admin/secret',
      'X-Rewrite-URL: /admin/secret',
      'X-HTTP-Method-Override: DELETE',
      'X-HTTP-Method: DELETE',
      'X-Method-Override: DELETE',
      'X.HTTP.Method.Override: DELETE',
      'X-Original-URI: /admin/secret',
      'X-Envoy-Original-Path: /admin/secret',
    ]) {
      const answer = await ask(field);
      expect(answer, field).toMatch(/^HTTP\/1\.1 403/);
      expect(answer, field).toContain('"override_refused"');
    }
    expect(await ask('X-Other: 1')).toContain('"x-other":"1"');
  });

  it('[R6] a header that proxies add does not pass', async () => {
    const ask = await world(rulesFor);
    for (const field of [
      'X-Forwarded-Host: evil.test',
      'X-Forwarded-Prefix: /admin',
      'X-Forwarded-Path: /admin/secret',
      'x_forwarded_path: /admin/secret',
      'Forwarded: host=evil.test',
    ]) {
      const answer = await ask(field);
      expect(answer, field).toMatch(/^HTTP\/1\.1 200/);
      expect(answer.toLowerCase(), field).not.toContain('forwarded');
    }
  });
});

describe('where no rule goes by the request', () => {
  it('these headers pass as they are', async () => {
    const ask = await world((port) => ({ allow: [`x.test:${port}`, own(port)] }));
    expect(await ask('X-Original-URL: /admin')).toContain('"x-original-url":"/admin"');
    expect(await ask('X-HTTP-Method-Override: PUT')).toContain('"x-http-method-override":"PUT"');
    expect(await ask('X-Forwarded-Host: a.test')).toContain('"x-forwarded-host":"a.test"');
  });
});
