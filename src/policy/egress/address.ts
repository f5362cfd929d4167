/**
 * Internet addresses as numbers: one strict reading, one way of writing, and which of them a sandbox reaches without being
 * told. What is not known to be public is not public.
 */

export interface Address {
  readonly family: 4 | 6;
  readonly value: bigint;
}

export interface Cidr extends Address {
  readonly prefix: number;
}

export type AddressClass =
  | 'public'
  | 'loopback'
  | 'private'
  | 'shared'
  | 'link_local'
  | 'metadata'
  | 'multicast'
  | 'documentation'
  | 'reserved'
  | 'mapped'
  | 'translated';

const bitsOf = { 4: 32, 6: 128 } as const;

/** Four decimal numbers without leading zeros, or IPv6 without brackets and zone. Any other form is no address. */
export function parseAddress(text: string): Address | undefined {
  const value = text.includes(':') ? parseV6(text) : parseV4(text);
  return value === undefined ? undefined : { family: text.includes(':') ? 6 : 4, value };
}

/** As RFC 5952 has it: lower case, the longest run of zeros left out, no dotted tail. */
export function formatAddress({ family, value }: Address): string {
  if (family === 4) return [24n, 16n, 8n, 0n].map((shift) => (value >> shift) & 255n).join('.');
  const groups = Array.from({ length: 8 }, (_, index) =>
    Number((value >> BigInt(112 - 16 * index)) & 0xffffn),
  );
  const run = longestZeros(groups);
  const hex = (list: readonly number[]): string => list.map((group) => group.toString(16)).join(':');
  if (run === undefined) return hex(groups);
  return `${hex(groups.slice(0, run.start))}::${hex(groups.slice(run.start + run.length))}`;
}

/** The address alone is a range of one. Bits beyond the prefix must be zero: else it is not what its writer meant. */
export function parseCidr(text: string): Cidr | undefined {
  const [before = '', prefixText, ...more] = text.split('/');
  const address = parseAddress(before);
  if (address === undefined || more.length > 0) return undefined;
  const bits = bitsOf[address.family];
  if (prefixText === undefined) return { ...address, prefix: bits };
  if (!/^(0|[1-9]\d{0,2})$/.test(prefixText)) return undefined;
  const prefix = Number(prefixText);
  if (prefix > bits) return undefined;
  return network(address, prefix) === address.value ? { ...address, prefix } : undefined;
}

export function inCidr(address: Address, cidr: Cidr): boolean {
  return address.family === cidr.family && network(address, cidr.prefix) === cidr.value;
}

export const isWholeAddress = ({ family, prefix }: Cidr): boolean => prefix === bitsOf[family];

export function classOf(address: Address): AddressClass {
  const found = ranges.find(({ cidr }) => inCidr(address, cidr))?.kind;
  if (found !== undefined) return found;
  // Only 2000::/3 is given out at all.
  return address.family === 4 || address.value >> 125n === 1n ? 'public' : 'reserved';
}

const range = (kind: AddressClass, ...texts: readonly string[]) =>
  texts.map((text) => {
    const cidr = parseCidr(text);
    if (cidr === undefined) throw new RangeError(`${text} is no range`);
    return { kind, cidr };
  });

/** The first that fits counts. Metadata services come first: some are in ranges that are public otherwise. */
const ranges = [
  ...range('metadata', '169.254.169.254', '169.254.169.253', '169.254.170.2', '169.254.170.23'),
  ...range('metadata', '100.100.100.200', '168.63.129.16', '192.0.0.192', 'fd00:ec2::254', 'fd20:ce::254'),
  ...range('loopback', '127.0.0.0/8', '::1'),
  ...range('private', '10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7', 'fec0::/10'),
  ...range('shared', '100.64.0.0/10'),
  ...range('link_local', '169.254.0.0/16', 'fe80::/10'),
  ...range('multicast', '224.0.0.0/4', 'ff00::/8'),
  ...range(
    'documentation',
    '192.0.2.0/24',
    '198.51.100.0/24',
    '203.0.113.0/24',
    '2001:db8::/32',
    '3fff::/20',
  ),
  ...range('reserved', '0.0.0.0/8', '192.0.0.0/24', '198.18.0.0/15', '240.0.0.0/4', '100::/64'),
  ...range('mapped', '::ffff:0:0/96'),
  // NAT64, 6to4 and Teredo carry an IPv4 address that nobody here would judge.
  ...range(
    'translated',
    '::ffff:0:0:0/96',
    '64:ff9b::/96',
    '64:ff9b:1::/48',
    '2002::/16',
    '2001::/32',
    '192.88.99.0/24',
  ),
  ...range('reserved', '::/96', '2001::/23'),
];

function network({ family, value }: Address, prefix: number): bigint {
  const host = BigInt(bitsOf[family] - prefix);
  return (value >> host) << host;
}

function parseV4(text: string): bigint | undefined {
  const parts = text.split('.');
  if (parts.length !== 4) return undefined;
  let value = 0n;
  for (const part of parts) {
    if (!/^(0|[1-9]\d{0,2})$/.test(part) || Number(part) > 255) return undefined;
    value = (value << 8n) | BigInt(part);
  }
  return value;
}

function parseV6(text: string): bigint | undefined {
  const halves = text.split('::');
  if (halves.length > 2) return undefined;
  const [head, tail] = halves.map(groupsOf);
  if (head === undefined || (halves.length === 2 && tail === undefined)) return undefined;
  const missing = 8 - head.length - (tail?.length ?? 0);
  if (halves.length === 2 ? missing < 1 : missing !== 0) return undefined;
  const groups = [...head, ...Array.from({ length: missing }, () => 0n), ...(tail ?? [])];
  return groups.reduce((value, group) => (value << 16n) | group, 0n);
}

/** A dotted tail counts as two groups. */
function groupsOf(text: string): readonly bigint[] | undefined {
  if (text === '') return [];
  const groups: bigint[] = [];
  const parts = text.split(':');
  for (const [index, part] of parts.entries()) {
    if (/^[0-9a-fA-F]{1,4}$/.test(part)) {
      groups.push(BigInt(`0x${part}`));
      continue;
    }
    const v4 = index === parts.length - 1 ? parseV4(part) : undefined;
    if (v4 === undefined) return undefined;
    groups.push(v4 >> 16n, v4 & 0xffffn);
  }
  return groups;
}

function longestZeros(groups: readonly number[]): { start: number; length: number } | undefined {
  let best: { start: number; length: number } | undefined;
  let start = 0;
  for (const [index, group] of groups.entries()) {
    if (group !== 0) start = index + 1;
    else if (index - start + 1 > Math.max(best?.length ?? 0, 1)) best = { start, length: index - start + 1 };
  }
  return best;
}
