/** A sandbox with services and a gate: each is reached by its own way, and what neither knows by none. */

import { beforeAll, describe, expect, it } from 'vitest';
import { testDns } from '../support/dns-server.ts';
import { entrances, helloServer, openFor, tryAll, tryDenials } from '../support/gate-box.ts';
import { openSandboxes, runInSandbox } from '../support/sandboxes.ts';
import { canMakeServiceImage, redisCommand, serviceImage } from '../support/service-image.ts';

const usable = canMakeServiceImage();
let image = '';
beforeAll(async () => {
  if (usable) image = await serviceImage();
});

describe.runIf(usable)('[A1][R6] egress beside services', () => {
  it('reaches a service by its name and an allowed host by the gate, and no other by either', async () => {
    const { port, seen } = await helloServer();
    const dns = await testDns({ 'allowed.test': ['127.0.0.1'], 'other.test': ['127.0.0.1'] });
    const { make } = await openSandboxes({ dnsServers: [dns.server] });
    const sandbox = await make({
      spec: {
        egress: { allow: openFor(port, 'allowed.test') ?? [] },
        required_services: [
          {
            name: 'cache',
            image,
            command: [...redisCommand],
            healthcheck: { test: 'redis-cli ping | grep -q PONG', interval: '200ms' },
          },
        ],
      },
    });
    const ping = 'exec 3<>/dev/tcp/cache/6379; printf "PING\\r\\n" >&3; head -c 5 <&3';
    expect((await runInSandbox(sandbox, ['bash', '-c', ping])).stdout.data).toBe('+PONG');

    const byAll = (host: string) => entrances.map((via) => ({ via, host, port, inner: `${host}:${port}` }));
    const whats = async (host: string) => (await tryAll(sandbox, byAll(host))).map(({ what }) => what);
    expect(await whats('allowed.test')).toEqual(entrances.map(() => 'reached'));
    for (const what of await whats('other.test')) expect(what).not.toBe('reached');
    expect(seen.every((line) => line.includes('allowed.test'))).toBe(true);
    expect(dns.asked.join()).not.toContain('other.test');
    expect(dns.asked.join()).not.toContain('cache');

    // There is a network here, and yet nothing of it leads on: what is denied is denied at once.
    const literals = ['8.8.8.8', '1.1.1.1', '192.0.2.1', '169.254.169.254', '10.255.255.1', '192.168.65.2'];
    const denials = [
      ...entrances.map((via) => ({ via, host: 'other.test', port })),
      ...literals.map((host) => ({ via: 'transparent' as const, host, port: 53 })),
    ];
    for (const { attempt, what, addedMs } of await tryDenials(sandbox, denials, {
      host: 'allowed.test',
      port,
    })) {
      expect(what, attempt.host).toMatch(/^(denied not_allowed|denied socks 2|no address|refused)$/);
      expect(addedMs, `${attempt.via} ${attempt.host}`).toBeLessThan(50);
    }
  });
});
