/** [R9] Both halves of a policy in force: what must not be reached is not, and what must be is. A dead network passes no preflight. */

import { describe, expect, it } from 'vitest';
import { probeEntrance, probeName } from '../../src/gate/preflight.ts';
import { startBox } from '../support/box.ts';
import { testDns } from '../support/dns-server.ts';
import { helloServer, openFor, tryOne } from '../support/gate-box.ts';
import { openSandboxes } from '../support/sandboxes.ts';

describe('[R9] before a sandbox is ready', () => {
  it.each([
    ['lets everything pass', 'HTTP/1.1 200 OK\r\n\r\n', 'a request that nothing allows'],
    ['denies everything', 'HTTP/1.1 403 Forbidden\r\n\r\n', 'a request that is allowed'],
  ])('an entrance that %s is found', async (_, answer, failing) => {
    const { porter } = await startBox();
    const listener = await porter.listen({ host: '127.0.0.1', port: 0 }, (tunnel) => {
      tunnel.once('data', () => tunnel.end(answer));
    });
    const place = { host: listener.address, port: listener.port };
    const checks = await probeEntrance(porter, place, probeName());
    expect(checks.filter(({ status }) => status === 'failed').map(({ name }) => name)).toEqual([failing]);
  });

  it('an entrance where nobody answers is found twice over, and no address is reached without it', async () => {
    const { porter } = await startBox();
    const checks = await probeEntrance(porter, { host: '127.0.0.1', port: 3128 }, probeName());
    expect(checks.map(({ name, status }) => [name, status])).toEqual([
      ['a request that nothing allows', 'failed'],
      ['a request that is allowed', 'failed'],
      ['straight to 169.254.169.254:80', 'ok'],
      ['straight to 1.1.1.1:53', 'ok'],
    ]);
  });
});

describe('[R9] sally verify', () => {
  it('says what is reached, what is not, and what to do; and leaves no trace in the log', async () => {
    const hello = await helloServer();
    const dns = await testDns({ 'good.test': ['127.0.0.1'] });
    const { make } = await openSandboxes({ dnsServers: [dns.server] });
    const allow = openFor(hello.port, 'good.test') ?? [];
    const box = await make({ spec: { egress: { allow } } });
    const good = await box.verify();
    expect(good.checks.filter(({ status }) => status === 'failed')).toEqual([]);
    expect(good.ok).toBe(true);
    const names = good.checks.map(({ name }) => name);
    expect(names).toEqual(
      expect.arrayContaining([
        'a request that nothing allows',
        'a request that is allowed',
        `reach good.test:${hello.port}`,
      ]),
    );
    const lines: string[] = [];
    for await (const { host } of box.netLog({ follow: false, signal: new AbortController().signal })) {
      lines.push(host);
    }
    expect(lines).toEqual([]);
    expect(await tryOne(box, { via: 'connect', host: 'good.test', port: hello.port })).toBe('reached');

    await box.changeNet({ allow: ['gone.test'], deny: [] });
    const bad = await box.verify();
    expect(bad.ok).toBe(false);
    expect(bad.checks.filter(({ status }) => status === 'failed')).toEqual([
      expect.objectContaining({
        name: 'reach gone.test:443',
        found: expect.stringContaining('gone.test could not be resolved'),
        advice: expect.stringContaining('see whether it is there'),
      }),
    ]);
  });

  it('finds an upstream that is not there', async () => {
    const { make } = await openSandboxes();
    const box = await make({ spec: { egress: { upstream: 'http://127.0.0.1:1', allow: ['good.test'] } } });
    const { ok, checks } = await box.verify();
    expect(ok).toBe(false);
    const failed = checks.filter(({ status }) => status === 'failed').map(({ name }) => name);
    expect(failed).toEqual(['reach the upstream', 'reach good.test:443']);
  });
});
