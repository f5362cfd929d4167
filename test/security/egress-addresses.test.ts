/** BYPASSES, destination address: names that are allowed and lead where nothing may go, through every entrance. */

import { describe, expect, it } from 'vitest';
import { testDns } from '../support/dns-server.ts';
import { entrances, type GateAttempt, helloServer, openFor, tryAll, tryOne } from '../support/gate-box.ts';
import { openSandboxes } from '../support/sandboxes.ts';

const places: Readonly<Record<string, readonly string[]>> = {
  loopback: ['127.0.0.2'],
  loopback6: ['::1'],
  private10: ['10.1.2.3'],
  private172: ['172.17.0.1'],
  desktop: ['192.168.65.2'],
  shared: ['100.64.0.1'],
  linklocal: ['169.254.1.1'],
  metadata: ['169.254.169.254'],
  unique: ['fd00::1'],
  multicast: ['224.0.0.251'],
  reserved: ['240.0.0.1'],
  documentation: ['192.0.2.1'],
  mapped: ['::ffff:127.0.0.1'],
  nat64: ['64:ff9b::7f00:1'],
  sixtofour: ['2002:7f00:1::1'],
  nowhere: ['0.0.0.0'],
  mixed: ['127.0.0.1', '10.0.0.1'],
  mixed6: ['127.0.0.1', 'fd00::1'],
};

describe('[R6] addresses at the gate', () => {
  it('are judged after the name is resolved: one that is not open denies the name, however many others there are', async () => {
    const { port, seen } = await helloServer();
    let turn = 0;
    const dns = await testDns({
      ...Object.fromEntries(Object.entries(places).map(([name, list]) => [`${name}.test`, list])),
      'good.test': ['127.0.0.1'],
      'broken.test': 'fail',
      'rebind.test': () => (turn++ < 2 ? ['127.0.0.1'] : ['10.0.0.1']),
    });
    const { make } = await openSandboxes({ dnsServers: [dns.server] });
    const sandbox = await make({
      spec: { egress: { allow: openFor(port, '**.any.test', '*.test') ?? [] } },
    }).catch((error: unknown) => error as Error);
    // A wildcard below a single label is refused, so every name is named.
    expect(sandbox).toMatchObject({ code: 'egress_rule_invalid' });
    const names = [...Object.keys(places), 'good', 'broken', 'missing', 'rebind'].map(
      (name) => `${name}.test`,
    );
    const box = await make({ spec: { egress: { allow: openFor(port, ...names) ?? [] } } });
    const attempts: GateAttempt[] = entrances.flatMap((via) => [
      ...names.filter((name) => name !== 'rebind.test').map((host) => ({ via, host, port })),
    ]);
    const results = await tryAll(box, attempts);
    const shown = attempts.map(({ via, host }, index) => `${via} ${host} ${results[index]?.what}`);
    const words = {
      http: 'denied',
      connect: 'denied',
      socks: 'denied socks 2',
      transparent: 'closed',
    } as const;
    const code = (host: string): string =>
      host === 'broken.test' || host === 'missing.test' ? ' name_not_resolved' : ' private_address';
    expect(shown).toEqual(
      attempts.map(({ via, host }) => {
        if (host === 'good.test') return `${via} ${host} reached`;
        return `${via} ${host} ${words[via]}${via === 'http' || via === 'connect' ? code(host) : ''}`;
      }),
    );
    expect(seen).toHaveLength(entrances.length);
    // What was judged is what is dialled: the second answer, which would be another, is never asked for.
    expect(await tryOne(box, { via: 'http', host: 'rebind.test', port })).toBe('reached');
    expect(dns.asked.filter((name) => name === 'rebind.test')).toHaveLength(2);
  });

  it('as literals need a rule that names them, and what is edited inside changes nothing', async () => {
    const { port } = await helloServer();
    const dns = await testDns({ 'good.test': ['127.0.0.1'] });
    const { make } = await openSandboxes({ dnsServers: [dns.server] });
    const box = await make({ spec: { egress: { allow: openFor(port, 'good.test') ?? [] } } });
    const literals = ['127.0.0.2', '10.0.0.1', '169.254.169.254', '8.8.8.8', '[::1]', '[::ffff:127.0.0.1]'];
    const attempts: GateAttempt[] = [
      ...literals.map((host) => ({ via: 'connect' as const, host, port })),
      { via: 'connect', host: '127.0.0.1', port },
      { via: 'connect', host: 'host.docker.internal', port },
    ];
    const results = (await tryAll(box, attempts)).map(({ what }) => what);
    expect(results).toEqual([...literals.map(() => 'denied not_allowed'), 'reached', 'denied not_allowed']);
  });
});
