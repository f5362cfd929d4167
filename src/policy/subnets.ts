/**
 * The subnets of sandboxes with services. Small ones, out of a range that is routed nowhere (RFC 2544), so that hundreds of
 * sandboxes fit where an engine's own pools are used up after thirty. Pure.
 */

export interface Subnet {
  readonly base: number;
  readonly bits: number;
}

/** 198.18.0.0/16. */
const range: Subnet = { base: 0xc612_0000, bits: 16 };
/** Room for a sandbox, its services and the address that an engine keeps for a gateway. */
const subnetBits = 28;
const subnetSize = 2 ** (32 - subnetBits);
export const subnetCount = 2 ** (subnetBits - range.bits);

/** Undefined: no IPv4 subnet. */
export function parseSubnet(text: string): Subnet | undefined {
  const match = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})\/(\d{1,2})$/.exec(text);
  if (match === null) return undefined;
  const [a = 0, b = 0, c = 0, d = 0, bits = 0] = match.slice(1).map(Number);
  if ([a, b, c, d].some((part) => part > 255) || bits > 32) return undefined;
  return { base: firstOf(((a * 256 + b) * 256 + c) * 256 + d, bits), bits };
}

export function formatSubnet({ base, bits }: Subnet): string {
  return `${[24, 16, 8, 0].map((shift) => Math.floor(base / 2 ** shift) % 256).join('.')}/${bits}`;
}

export function subnetsOverlap(a: Subnet, b: Subnet): boolean {
  const bits = Math.min(a.bits, b.bits);
  return firstOf(a.base, bits) === firstOf(b.base, bits);
}

/** Those of ours that overlap none of `taken`, beginning with number `first`, so that two who look at once rarely meet. */
export function* freeSubnets(taken: readonly Subnet[], first: number): Generator<Subnet> {
  for (let offset = 0; offset < subnetCount; offset++) {
    const index = (first + offset) % subnetCount;
    const subnet = { base: range.base + index * subnetSize, bits: subnetBits };
    if (!taken.some((other) => subnetsOverlap(other, subnet))) yield subnet;
  }
}

function firstOf(address: number, bits: number): number {
  const size = 2 ** (32 - bits);
  return Math.floor(address / size) * size;
}
