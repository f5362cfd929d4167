/** Opens one HTTP request to an endpoint, whatever way leads there. Knows nothing of the Docker API. */

import { readFileSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import type { Endpoint, TlsFiles } from '../endpoint/endpoint.ts';
import { dialOverSsh } from './ssh.ts';

export type Transport = (options: http.RequestOptions) => http.ClientRequest;

/**
 * A new connection for each request: a local connect costs a tenth of a millisecond, and a pooled socket that the engine
 * closed meanwhile would turn an engine restart into spurious failures.
 */
export function openTransport(endpoint: Endpoint): Transport {
  switch (endpoint.kind) {
    case 'unix':
      return (options) => http.request({ ...options, socketPath: endpoint.path, agent: false });
    case 'ssh':
      return (options) => http.request({ ...options, createConnection: () => dialOverSsh(endpoint) });
    case 'tcp': {
      const address = { host: endpoint.host, port: endpoint.port, agent: false as const };
      if (endpoint.tls === undefined) return (options) => http.request({ ...options, ...address });
      const tls = tlsOptions(endpoint.tls);
      return (options) => https.request({ ...options, ...address, ...tls });
    }
  }
}

function tlsOptions(files: TlsFiles): https.RequestOptions {
  return {
    rejectUnauthorized: !files.skipVerify,
    ...(files.caPath === undefined ? {} : { ca: readFileSync(files.caPath) }),
    ...(files.certPath === undefined ? {} : { cert: readFileSync(files.certPath) }),
    ...(files.keyPath === undefined ? {} : { key: readFileSync(files.keyPath) }),
  };
}
