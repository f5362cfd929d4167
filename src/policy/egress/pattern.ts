/**
 * For which hosts a rule is. `x.com` is that name, `*.x.com` one label before it, `**.x.com` one or more; neither wildcard
 * is the name itself, and none ever fits an address.
 */

import { type Address, type Cidr, inCidr, isWholeAddress, parseCidr } from './address.ts';
import { type CanonicalHost, type HostProblem, parseHost } from './host.ts';
import { isPublicSuffix } from './public-suffixes.ts';

export type Pattern =
  | { readonly kind: 'name'; readonly name: string }
  | { readonly kind: 'one-label' | 'any-depth'; readonly base: string }
  | { readonly kind: 'range'; readonly cidr: Cidr };

/** Wider ranges than this are nearly everything, and nobody lists everything by mistake. */
const widestPrefix = { 4: 8, 6: 16 } as const;

/** `allow` is held to more than `deny`: to deny too much opens nothing. */
export function parsePattern(text: string, use: 'allow' | 'deny'): Pattern | HostProblem {
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(text))
    return { problem: 'is a URL; write the host alone, as in x.com' };
  const wildcard = /^(\*\*?)\.(.*)$/s.exec(text);
  if (wildcard !== null)
    return parseWildcard(wildcard[1] === '*' ? 'one-label' : 'any-depth', wildcard[2] ?? '', use);
  if (text === '*' || text === '**') {
    return { problem: 'would be every host; `egress.mode: dangerously-allow-all` says that by its name' };
  }
  if (text.includes('*'))
    return { problem: 'has a * elsewhere than as its whole first label (*.x.com, **.x.com)' };
  const inside = text.startsWith('[') && text.endsWith(']') ? text.slice(1, -1) : text;
  const cidr = parseCidr(inside);
  if (cidr !== undefined) return rangePattern(cidr, use);
  if (text.includes('/')) {
    return { problem: 'is no range of addresses; write it like 10.1.0.0/16, with zeros behind the prefix' };
  }
  const host = parseHost(text);
  return 'problem' in host ? host : { kind: 'name', name: host.host };
}

export function fitsHost(pattern: Pattern, { host, isAddress }: CanonicalHost): boolean {
  if (pattern.kind === 'range' || isAddress) return false;
  if (pattern.kind === 'name') return host === pattern.name;
  if (!host.endsWith(`.${pattern.base}`)) return false;
  const before = host.slice(0, -pattern.base.length - 1);
  return before !== '' && (pattern.kind === 'any-depth' || !before.includes('.'));
}

export const fitsAddress = (pattern: Pattern, address: Address): boolean =>
  pattern.kind === 'range' && inCidr(address, pattern.cidr);

/** Names this one address and no other. */
export const isExactAddress = (pattern: Pattern): boolean =>
  pattern.kind === 'range' && isWholeAddress(pattern.cidr);

export const isWildcard = ({ kind }: Pattern): boolean => kind === 'one-label' || kind === 'any-depth';

function parseWildcard(
  kind: 'one-label' | 'any-depth',
  text: string,
  use: 'allow' | 'deny',
): Pattern | HostProblem {
  const base = parseHost(text);
  if ('problem' in base) return { problem: `${base.problem} (behind the wildcard)` };
  if (base.isAddress) return { problem: 'has a wildcard before an address; write a range like 10.1.0.0/16' };
  if (use === 'allow' && isPublicSuffix(base.host)) {
    return {
      problem: `would allow names of anybody: strangers get names under ${base.host}; name the host, or a wildcard with one label more`,
    };
  }
  return { kind, base: base.host };
}

function rangePattern(cidr: Cidr, use: 'allow' | 'deny'): Pattern | HostProblem {
  if (use === 'allow' && cidr.prefix < widestPrefix[cidr.family]) {
    return { problem: `is wider than /${widestPrefix[cidr.family]}; name the ranges that you mean` };
  }
  return { kind: 'range', cidr };
}
