import { describe, expect, it } from 'vitest';
import { testDns } from '../../test/support/dns-server.ts';
import { formatAddress } from '../policy/egress/address.ts';
import { dnsResolver, type NameResolver } from './resolver.ts';

const { signal } = new AbortController();
const addresses = async (resolver: NameResolver, name: string): Promise<readonly string[]> =>
  (await resolver.resolve(name, signal)).map(formatAddress);

describe('names', () => {
  it('[R6] are told again to the same sandbox while the answer holds, and to no other one', async () => {
    let turn = 0;
    const dns = await testDns({ 'a.test': () => [turn++ < 2 ? '192.0.2.1' : '192.0.2.2'] }, 3600);
    const machine = dnsResolver([dns.server]);
    const [first, second] = [machine.remembering(), machine.remembering()];
    expect(await addresses(first, 'a.test')).toEqual(['192.0.2.1']);
    expect(await addresses(first, 'a.test')).toEqual(['192.0.2.1']);
    // One question for each family.
    expect(dns.asked).toHaveLength(2);
    expect(await addresses(second, 'a.test')).toEqual(['192.0.2.2']);
    expect(dns.asked).toHaveLength(4);
    expect(await addresses(machine, 'a.test')).toEqual(['192.0.2.2']);
    expect(dns.asked).toHaveLength(6);
  });

  it('[R6] whose answer holds for no time, and failures, are asked for each time', async () => {
    const dns = await testDns({ 'a.test': ['192.0.2.1'] });
    const resolver = dnsResolver([dns.server]).remembering();
    for (const count of [2, 4]) {
      expect(await addresses(resolver, 'a.test')).toEqual(['192.0.2.1']);
      expect(dns.asked.filter((name) => name === 'a.test')).toHaveLength(count);
    }
    const lasting = await testDns({ 'broken.test': 'fail' }, 3600);
    const other = dnsResolver([lasting.server]).remembering();
    for (const name of ['broken.test', 'missing.test']) {
      await expect(addresses(other, name)).rejects.toMatchObject({ code: 'egress_denied' });
      const asked = lasting.asked.length;
      await expect(addresses(other, name)).rejects.toMatchObject({ code: 'egress_denied' });
      expect(lasting.asked.length).toBeGreaterThan(asked);
    }
  });
});
