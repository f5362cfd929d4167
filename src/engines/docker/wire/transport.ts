/** Opens one HTTP request to an endpoint, whatever way leads there. Knows nothing of the Docker API. */

import { readFileSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import { isIP } from 'node:net';
import { createSecureContext, type SecureContext } from 'node:tls';
import { SallyportError } from '../../../protocol/errors.ts';
import type { Endpoint, TlsFiles } from '../endpoint/endpoint.ts';
import { dialOverSsh } from './ssh.ts';

export type Transport = (options: http.RequestOptions) => http.ClientRequest;

/** Behind a socket or a pipe there is no host to name; the engine wants a header all the same. */
const localHost = { Host: 'docker' };

/**
 * A new connection for each request: a local connect costs a tenth of a millisecond, and a pooled socket that the engine
 * closed meanwhile would turn an engine restart into spurious failures.
 */
export function openTransport(endpoint: Endpoint): Transport {
  switch (endpoint.kind) {
    case 'unix':
      return ({ headers, ...options }) =>
        http.request({
          ...options,
          headers: { ...localHost, ...headers },
          socketPath: endpoint.path,
          agent: false,
        });
    case 'ssh':
      return ({ headers, ...options }) =>
        http.request({
          ...options,
          headers: { ...localHost, ...headers },
          createConnection: () => dialOverSsh(endpoint),
        });
    case 'tcp': {
      const address = { host: endpoint.host, port: endpoint.port, agent: false as const };
      if (endpoint.tls === undefined) return (options) => http.request({ ...options, ...address });
      const tls = {
        secureContext: secureContext(endpoint.tls),
        rejectUnauthorized: !endpoint.tls.skipVerify,
        // SECURITY: the name that the certificate is checked against. An address cannot be sent as a name; it is
        // then checked as the address that it is.
        servername: isIP(endpoint.host) === 0 ? endpoint.host : '',
      };
      return (options) => https.request({ ...options, ...address, ...tls });
    }
  }
}

function secureContext(files: TlsFiles): SecureContext {
  const ca = readPem(files.caPath);
  const cert = readPem(files.certPath);
  const key = readPem(files.keyPath);
  try {
    return createSecureContext({
      ...(ca === undefined ? {} : { ca }),
      ...(cert === undefined ? {} : { cert }),
      ...(key === undefined ? {} : { key }),
    });
  } catch (cause) {
    const paths = [files.caPath, files.certPath, files.keyPath].filter((path) => path !== undefined);
    throw tlsFileError(`the certificates in ${paths.join(', ')} cannot be used`, paths, cause);
  }
}

function readPem(path: string | undefined): Buffer | undefined {
  if (path === undefined) return undefined;
  try {
    return readFileSync(path);
  } catch (cause) {
    throw tlsFileError(`cannot read the certificate file ${path}`, [path], cause);
  }
}

function tlsFileError(message: string, paths: readonly string[], cause: unknown): SallyportError {
  return new SallyportError('engine_endpoint_invalid', message, {
    cause,
    details: { paths },
    advice: 'Put ca.pem, cert.pem and key.pem into DOCKER_CERT_PATH, or make the docker context again.',
  });
}
