/** By which way what is allowed leaves this machine. */

import { SallyportError } from '../../protocol/errors.ts';
import { parseAuthority } from './host.ts';

export type Upstream =
  | { readonly kind: 'direct' }
  /** A Tor client that the daemon starts. */
  | { readonly kind: 'tor' }
  | ProxyUpstream;

export interface ProxyUpstream {
  readonly kind: 'http' | 'socks5';
  readonly host: string;
  readonly port: number;
  /** A Tor client that somebody else started. */
  readonly isTor: boolean;
}

export function parseUpstream(text: string | undefined): Upstream {
  if (text === undefined || text === 'direct') return { kind: 'direct' };
  if (text === 'tor') return { kind: 'tor' };
  const [, scheme = '', address = ''] = /^(tor|http|socks5h?):\/\/([^/]*)\/?$/.exec(text) ?? [];
  if (address.includes('@')) throw invalid('carries a login, and a spec is no place for one', withSecret);
  const read = parseAuthority(address);
  if (scheme === '' || 'problem' in read) {
    const why = scheme !== '' && 'problem' in read && address !== '' ? `; the address ${read.problem}` : '';
    throw invalid(`${JSON.stringify(text)} is no upstream${why}`, forms);
  }
  const { host, port } = read;
  return { kind: scheme === 'http' ? 'http' : 'socks5', host, port, isTor: scheme === 'tor' };
}

/** A login is for a proxy that wants one. Tor has none. */
export function requireLoginFits(upstream: Upstream, secret: string | undefined): void {
  if (secret === undefined || ((upstream.kind === 'http' || upstream.kind === 'socks5') && !upstream.isTor)) {
    return;
  }
  throw new SallyportError('egress_rule_invalid', 'egress.upstream_secret: this upstream takes no login', {
    details: { field: 'egress.upstream_secret' },
    advice: 'Leave it out, or name a proxy: upstream: http://proxy:3128 or socks5://proxy:1080.',
  });
}

const forms = 'Write direct, tor, tor://127.0.0.1:9050, http://proxy:3128 or socks5://proxy:1080.';
const withSecret =
  'Keep `user:password` as a secret: `sally secret set corp --host <proxy> --port <port> --header proxy-authorization`, then `upstream_secret: corp`.';

function invalid(what: string, advice: string): SallyportError {
  return new SallyportError('egress_rule_invalid', `egress.upstream: ${what}`, {
    details: { field: 'egress.upstream' },
    advice,
  });
}
