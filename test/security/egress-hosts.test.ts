/** BYPASSES, host matching: one table of names through every entrance, with those that are allowed among them. */

import { describe, expect, it } from 'vitest';
import { testDns } from '../support/dns-server.ts';
import {
  entrances,
  type GateAttempt,
  helloServer,
  openFor,
  tryAll,
  tryDenials,
} from '../support/gate-box.ts';
import { openSandboxes } from '../support/sandboxes.ts';

const here = ['127.0.0.1'];
const fullWidth = Buffer.from('ａllowed.test').toString('latin1');

/** The second word: whether it is reached. */
const hosts: readonly (readonly [string, boolean])[] = [
  ['allowed.test', true],
  ['ALLOWED.Test', true],
  ['allowed.test.', true],
  ['a.wild.test', true],
  ['a.deep.test', true],
  ['a.b.deep.test', true],
  ['evilallowed.test', false],
  ['allowed.test.evil.test', false],
  ['a.b.wild.test', false],
  ['wild.test', false],
  ['deep.test', false],
  ['denied.wild.test', false],
  ['other.test', false],
  ['allowed.test..', false],
  ['.allowed.test', false],
  ['allowed..test', false],
  ['allowed%2etest', false],
  ['allowed.test%00.evil.test', false],
  [`${'a'.repeat(64)}.wild.test`, false],
  [`${'a.'.repeat(125)}deep.test`, false],
  ['user@allowed.test', false],
  ['xn--a.wild.test', false],
  [fullWidth, false],
  ['2130706433', false],
  ['127.1', false],
  ['0x7f.0.0.1', false],
  ['0177.0.0.1', false],
  ['127.0.0.2', false],
];

describe('[R6] hosts at the gate', () => {
  it('are judged alike by every entrance: what is allowed is reached, and nothing else', async () => {
    const { port, seen } = await helloServer();
    const names = [
      'allowed.test',
      'a.wild.test',
      'a.deep.test',
      'a.b.deep.test',
      'denied.wild.test',
      'other.test',
    ];
    const dns = await testDns(Object.fromEntries(names.map((name) => [name, here])));
    const all = await openSandboxes({ dnsServers: [dns.server] });
    const sandbox = await all.make({
      spec: {
        egress: {
          allow: openFor(port, 'allowed.test', '*.wild.test', '**.deep.test') ?? [],
          deny: ['denied.wild.test'],
        },
      },
    });
    const attempts: GateAttempt[] = entrances.flatMap((via) =>
      hosts
        // A number is an address to the resolver of every program: the question never gets to the gate.
        .filter(([host]) => via !== 'transparent' || !/^[0-9a-fx.]+$/.test(host))
        .map(([host]) => ({ via, host, port, inner: `${host.toLowerCase().replace(/\.$/, '')}:${port}` })),
    );
    const results = await tryAll(sandbox, attempts);
    const wrong = attempts
      .map(({ via, host }, index) => ({ via, host, what: results[index]?.what ?? '' }))
      .filter(({ host, what }) => (what === 'reached') !== hosts.find(([name]) => name === host)?.[1]);
    expect(wrong).toEqual([]);
    const allowed = hosts.filter(([, reached]) => reached).length;
    expect(seen).toHaveLength(allowed * entrances.length);
    // Nobody was asked for a name that is not allowed.
    expect(new Set(dns.asked)).toEqual(
      new Set(['allowed.test', 'a.wild.test', 'a.deep.test', 'a.b.deep.test']),
    );
    expect(all.reports).toEqual([]);
  });

  it('are told why in JSON or by the code of SOCKS, and at once', async () => {
    const { port } = await helloServer();
    const dns = await testDns({ 'allowed.test': here });
    const { make } = await openSandboxes({ dnsServers: [dns.server] });
    const sandbox = await make({ spec: { egress: { allow: openFor(port, 'allowed.test') ?? [] } } });
    const denials = entrances.map((via) => ({ via, host: 'evil.test', port }));
    const results = await tryDenials(sandbox, denials, { host: 'allowed.test', port });
    expect(results.map(({ what }) => what)).toEqual([
      'denied not_allowed',
      'denied not_allowed',
      'denied socks 2',
      'no address',
    ]);
    for (const { addedMs, attempt } of results) expect(addedMs, attempt.via).toBeLessThan(50);
    const others = await tryAll(sandbox, [
      { via: 'connect', host: 'allowed.test', port: port === 8080 ? 8081 : 8080 },
      { via: 'connect', host: 'allowed.test', port: '0' },
      { via: 'connect', host: 'allowed.test', port: '65536' },
      { via: 'connect', host: 'allowed.test', port: `0${port}` },
      { via: 'connect', host: 'allowed.test', port },
    ]);
    const [otherPort, ...rest] = others.map(({ what }) => what);
    expect(otherPort).toBe('denied port_not_allowed');
    expect(rest.pop()).toBe('reached');
    for (const what of rest) expect(what).not.toBe('reached');
    const denied = sandbox.net().denied.find(({ host, port: at }) => host === 'evil.test' && at === port);
    expect(denied).toMatchObject({
      count: 3 * 5,
      advice: `sally net allow ${sandbox.name} evil.test:${port}`,
    });
  });
});
