/** Whom a request is for and which path it asks for. Host, URL and connection must say the same, or it is refused. */

import { decodedPath } from '../../policy/egress/request-path.ts';
import type { Destination } from '../contract.ts';
import { readAuthority, sameDestination } from './authority.ts';
import type { RequestHead } from './head.ts';
import { HttpViolation } from './violation.ts';

export interface RequestTarget {
  readonly destination: Destination;
  /** With its query; `*` for an OPTIONS that is about the server. */
  readonly path: string;
}

export const defaultPorts = { http: 80, https: 443 } as const;

export function hostOf({ headers }: RequestHead, defaultPort: number): Destination {
  const hosts = headers.all('host');
  const [host] = hosts;
  if (host === undefined) throw new HttpViolation('host_missing', 'the request has no Host');
  if (hosts.length > 1) throw new HttpViolation('host_repeated', 'the request has more than one Host');
  return readAuthority(host, defaultPort);
}

/** With `authority` the connection itself says for whom it is; without one every request names its host, as to a proxy. */
export function readTarget(
  head: RequestHead,
  scheme: 'http' | 'https',
  authority: Destination | undefined,
): RequestTarget {
  const host = hostOf(head, defaultPorts[scheme]);
  const named = namedTarget(head, scheme);
  const destination = authority ?? named.destination;
  if (destination === undefined) {
    throw new HttpViolation('target_refused', 'this is a proxy: the request line has to hold a whole URL');
  }
  const all = [host, ...(named.destination === undefined ? [] : [named.destination])];
  if (!all.every((one) => sameDestination(one, destination))) {
    throw new HttpViolation('host_mismatch', 'Host, the URL and the connection name different hosts');
  }
  return { destination, path: named.path };
}

function namedTarget(
  { target, method }: RequestHead,
  scheme: 'http' | 'https',
): { readonly destination?: Destination; readonly path: string } {
  if (target.startsWith('/')) return { path: withoutFragment(target) };
  if (target === '*' && method === 'OPTIONS') return { path: '*' };
  const match = /^([A-Za-z][A-Za-z0-9+.-]*):\/\/([^/?#]*)(.*)$/.exec(target);
  if (match === null) throw new HttpViolation('target_refused', 'the target is neither a path nor a URL');
  const [, named = '', authority = '', rest = ''] = match;
  if (named.toLowerCase() !== scheme) {
    throw new HttpViolation('target_refused', `a URL with ${named}: goes through CONNECT, not through here`);
  }
  const path = rest.startsWith('/') ? rest : `/${rest}`;
  return { destination: readAuthority(authority, defaultPorts[scheme]), path: withoutFragment(path) };
}

function withoutFragment(path: string): string {
  if (path.includes('#')) throw new HttpViolation('target_refused', 'the target has a fragment');
  return path;
}

/**
 * Servers disagree about these paths: what is a literal segment to one climbs up, or divides, for another. A rule about
 * paths cannot be kept for them. The query is no part of it.
 */
export function isAmbiguousPath(path: string): boolean {
  const [name = ''] = path.split('?');
  // Percent signs that are none, and bytes that are not UTF-8: `%c0%ae` is a dot to some.
  if (decodedPath(name) === undefined) return true;
  // Encoded slash, backslash, dot, percent, semicolon, control characters: some servers decode before they route.
  if (/%(?:2f|5c|2e|25|3b|[01].|7f)/i.test(name) || name.includes('\\')) return true;
  return name
    .split('/')
    .slice(1)
    .some((segment, index, all) => {
      const [bare = ''] = segment.split(';');
      return bare === '.' || bare === '..' || (segment === '' && index < all.length - 1);
    });
}
