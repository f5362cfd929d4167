/**
 * From `egress.upstream` to the proxy that a connection goes by: a Tor client of the daemon's own, or an address with, where it takes one,
 * a login that is a secret of the user.
 */

import type { Upstream } from '../policy/egress/upstream.ts';
import { SallyportError } from '../protocol/errors.ts';
import type { SecretSource } from './credentials.ts';
import type { UpstreamProxy } from './dial.ts';
import type { TorLease } from './tor/tor-client.ts';

export interface UpstreamParts {
  readonly upstream: Upstream;
  /** The name of a secret. */
  readonly login: string | undefined;
  readonly secrets: SecretSource | undefined;
  readonly tor: () => TorLease | undefined;
  /** Of a Tor client that is not ours: sandboxes share no circuit there, either. */
  readonly sandbox: string;
}

/** A connection that is wanted now waits so long for a Tor client that is not ready. */
const torMs = 25_000;
const loginHeader = 'proxy-authorization';

/** Undefined: nobody is in between. */
export function findProxy(
  parts: UpstreamParts,
): ((signal: AbortSignal) => Promise<UpstreamProxy>) | undefined {
  const { upstream } = parts;
  switch (upstream.kind) {
    case 'direct':
      return undefined;
    case 'tor':
      return async (signal) => {
        const lease = parts.tor();
        if (lease === undefined) throw new SallyportError('tor_missing', 'this gate starts no Tor client');
        const { path, login } = await lease.socks(torMs, signal);
        return { kind: 'socks5', place: { path }, label: 'Tor', login };
      };
    case 'http':
    case 'socks5': {
      const { kind, host, port, isTor } = upstream;
      const label = `${isTor ? 'Tor' : 'the upstream'} at ${host}:${port}`;
      const known = isTor ? { user: parts.sandbox, password: 'sallyport' } : undefined;
      return async () => ({ kind, place: { host, port }, label, login: known ?? (await readLogin(parts)) });
    }
  }
}

/**
 * Before anything is made.
 *
 * SECURITY: a spec may come with a cloned project. A secret goes to the proxy that its user bound it to, and to no other that a spec names.
 */
export function requireLogin({ upstream, login, secrets }: Omit<UpstreamParts, 'tor' | 'sandbox'>): void {
  if (login === undefined || upstream.kind === 'direct' || upstream.kind === 'tor') return;
  const field = 'egress.upstream_secret';
  const binding = secrets?.binding(login);
  const { host, port } = upstream;
  const advice = `\`sally secret set ${login} --host ${host} --port ${port} --header ${loginHeader}\`, with \`user:password\` as its value.`;
  if (binding === undefined) {
    throw new SallyportError('secret_not_found', `${field}: there is no secret ${login}`, {
      details: { field, name: login },
      advice: `Set it: ${advice}`,
    });
  }
  const fits = binding.hosts.includes(host) && binding.port === port && binding.headers.includes(loginHeader);
  if (fits) return;
  throw new SallyportError(
    'refused_by_policy',
    `${field}: ${login} is not bound to ${host}:${port} as a login`,
    {
      details: { field, name: login },
      advice: `Bind it: ${advice}`,
    },
  );
}

/** At each connection, so that a rotation counts at once, and a binding that was changed. */
async function readLogin(parts: UpstreamParts): Promise<UpstreamProxy['login']> {
  const { login, secrets } = parts;
  if (login === undefined || secrets === undefined) return undefined;
  requireLogin(parts);
  const value = await secrets.value(login);
  const at = value.indexOf(':');
  if (at < 1 || at === value.length - 1) {
    throw new SallyportError('upstream_refused', `the secret ${login} is not written as user:password`, {
      details: { name: login },
    });
  }
  return { user: value.slice(0, at), password: value.slice(at + 1) };
}
