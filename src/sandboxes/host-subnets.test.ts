import { describe, expect, it } from 'vitest';
import { formatSubnet } from '../policy/subnets.ts';
import { hostSubnets, routedSubnets } from './host-subnets.ts';

const table = `Iface	Destination	Gateway 	Flags	RefCnt	Use	Metric	Mask		MTU	Window	IRTT
eth0	00000000	010200C0	0003	0	0	0	00000000	0	0	0
sally0	00D50A0A	00000000	0001	0	0	0	00FFFFFF	0	0	0
vpn0	000012C6	00000000	0001	0	0	0	0000FFFF	0	0	0
`;

describe('the subnets of this machine', () => {
  it('[A1] are those that it has routes to, without the default route', () => {
    expect(routedSubnets(table).map(formatSubnet)).toEqual(['10.10.213.0/24', '198.18.0.0/16']);
  });

  it('are known, also where there is no table', async () => {
    expect(routedSubnets('')).toEqual([]);
    expect((await hostSubnets()).map(formatSubnet)).toContain('127.0.0.0/8');
  });
});
