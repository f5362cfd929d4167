/** Where an engine listens, parsed once from the forms that `DOCKER_HOST` and docker contexts use. */

import { SallyportError } from '../../../protocol/errors.ts';

export interface TlsFiles {
  readonly caPath?: string;
  readonly certPath?: string;
  readonly keyPath?: string;
  readonly skipVerify: boolean;
}

export type Endpoint =
  | { readonly kind: 'unix'; readonly path: string }
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number; readonly tls?: TlsFiles }
  | { readonly kind: 'ssh'; readonly host: string; readonly user?: string; readonly port?: number };

/** The text form, for messages and for `docker -H`. */
export function describeEndpoint(endpoint: Endpoint): string {
  switch (endpoint.kind) {
    case 'unix':
      return `unix://${endpoint.path}`;
    case 'tcp':
      return `tcp://${endpoint.host.includes(':') ? `[${endpoint.host}]` : endpoint.host}:${endpoint.port}`;
    case 'ssh': {
      const user = endpoint.user === undefined ? '' : `${endpoint.user}@`;
      const port = endpoint.port === undefined ? '' : `:${endpoint.port}`;
      return `ssh://${user}${endpoint.host}${port}`;
    }
  }
}

function invalid(address: string, reason: string): SallyportError {
  return new SallyportError(
    'engine_endpoint_invalid',
    `engine address ${JSON.stringify(address)}: ${reason}`,
    {
      details: { address },
    },
  );
}

export function parseEndpoint(address: string, tls?: TlsFiles): Endpoint {
  if (address.startsWith('unix://')) {
    const path = address.slice('unix://'.length);
    if (!path.startsWith('/')) throw invalid(address, 'the socket path must be absolute');
    if (path.includes('\0')) throw invalid(address, 'the socket path is not usable');
    return { kind: 'unix', path };
  }
  const [, scheme = ''] = /^([a-z]+):\/\//i.exec(address) ?? [];
  let url: URL;
  try {
    // Parsed as `tcp:`, because the parser drops the default port of `http:` and `https:` even where it is written out.
    url = new URL(address.replace(/^https?:/i, 'tcp:'));
  } catch (cause) {
    throw invalid(address, `not an address (${cause instanceof Error ? cause.message : 'unparsable'})`);
  }
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
  switch (scheme.toLowerCase()) {
    case 'tcp':
    case 'http':
    case 'https': {
      if (host === '') throw invalid(address, 'no host');
      if (url.pathname !== '' && url.pathname !== '/') throw invalid(address, 'a path is not supported');
      if (url.username !== '' || url.password !== '') throw invalid(address, 'a user name is not supported');
      const secured = tls ?? (scheme.toLowerCase() === 'https' ? { skipVerify: false } : undefined);
      const port = url.port === '' ? (secured === undefined ? 2375 : 2376) : Number(url.port);
      return secured === undefined ? { kind: 'tcp', host, port } : { kind: 'tcp', host, port, tls: secured };
    }
    case 'ssh': {
      // SECURITY: the host becomes an argument of ssh; a leading dash would be read as an option.
      if (host === '' || host.startsWith('-')) throw invalid(address, 'no usable host');
      const user = decode(url.username);
      if (user === undefined || user.startsWith('-')) throw invalid(address, 'the user name is not usable');
      if (url.password !== '') throw invalid(address, 'a password in the address is not supported');
      if (url.pathname !== '' && url.pathname !== '/') throw invalid(address, 'a path is not supported');
      return {
        kind: 'ssh',
        host,
        ...(user === '' ? {} : { user }),
        ...(url.port === '' ? {} : { port: Number(url.port) }),
      };
    }
    case 'npipe':
      throw invalid(address, 'Windows named pipes are not supported; use WSL 2');
    default:
      throw invalid(address, scheme === '' ? 'no scheme' : `unknown scheme ${scheme}://`);
  }
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
