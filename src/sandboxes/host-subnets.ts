/** The IPv4 subnets that this machine has routes to, so that none of them is chosen for a network of a sandbox. */

import { readFile } from 'node:fs/promises';
import { networkInterfaces } from 'node:os';
import { parseSubnet, type Subnet } from '../policy/subnets.ts';

export async function hostSubnets(): Promise<readonly Subnet[]> {
  const own = Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .flatMap(({ family, cidr }) => (family === 'IPv4' && cidr !== null ? (parseSubnet(cidr) ?? []) : []));
  // Only Linux has it; elsewhere the engine runs in a machine of its own.
  const table = await readFile('/proc/net/route', 'latin1').catch(() => '');
  return [...own, ...routedSubnets(table)];
}

/** The kernel writes addresses as little-endian hexadecimal numbers. The default route is to everywhere, and left out. */
export function routedSubnets(table: string): readonly Subnet[] {
  return table
    .split('\n')
    .slice(1)
    .map((line) => line.split('\t'))
    .flatMap(([, destination = '', , , , , , mask = '']) => {
      const bits = Math.clz32(~turned(mask) >>> 0);
      const subnet = parseSubnet(`${dotted(turned(destination))}/${bits}`);
      return bits === 0 || subnet === undefined || mask === '' ? [] : [subnet];
    });
}

function turned(hex: string): number {
  return Buffer.from(hex.padStart(8, '0'), 'hex').readUInt32LE(0);
}

const dotted = (address: number): string =>
  [24, 16, 8, 0].map((shift) => (address >>> shift) & 255).join('.');
