/** The one place where the engine's failures become ours: socket errors, HTTP statuses, and the few texts that matter. */

import type { IncomingMessage } from 'node:http';
import { type ErrorCode, SallyportError } from '../../../protocol/errors.ts';
import { SshError } from './ssh.ts';

const unreachable = new Set([
  'ENOENT',
  'ENOTDIR',
  'ECONNREFUSED',
  'ECONNRESET',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ETIMEDOUT',
  'EPIPE',
]);

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : '';
}

/** Certificates that could not be verified, as Node names them (OpenSSL's X509_V_ERR_*, and its own host name check). */
const untrusted =
  /^(DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_(GET_ISSUER|VERIFY_)|CERT_|ERR_TLS_CERT_ALTNAME|HOSTNAME_MISMATCH|INVALID_CA)/;

export function connectionError(endpoint: string, cause: unknown): SallyportError {
  if (cause instanceof SallyportError) return cause;
  if (cause instanceof SshError) return sshError(endpoint, cause);
  const code = codeOf(cause);
  const options = { cause, details: { endpoint } };
  if (code === 'EACCES' || code === 'EPERM') {
    return new SallyportError('engine_permission_denied', `permission denied on ${endpoint}`, options);
  }
  if (untrusted.test(code)) {
    const reason = cause instanceof Error ? cause.message : code;
    return new SallyportError(
      'engine_unreachable',
      `the certificate of ${endpoint} is not trusted: ${reason}`,
      {
        ...options,
        advice: 'Check the address and ca.pem in DOCKER_CERT_PATH (or in the docker context).',
      },
    );
  }
  if (/^ERR_SSL_.*ALERT.*(CERTIFICATE|UNKNOWN_CA|ACCESS_DENIED)/.test(code)) {
    return new SallyportError('engine_permission_denied', `${endpoint} refused our client certificate`, {
      ...options,
      advice: 'Put a cert.pem and key.pem that the engine accepts into DOCKER_CERT_PATH.',
    });
  }
  if (code.startsWith('HPE_')) {
    return new SallyportError('engine_protocol', `${endpoint} does not speak HTTP`, options);
  }
  // What Node makes of an answer that is no TLS record.
  if (code === 'EPROTO' || code === 'ERR_SSL_WRONG_VERSION_NUMBER') {
    return new SallyportError(
      'engine_protocol',
      `${endpoint} does not speak TLS, or none that we do`,
      options,
    );
  }
  const reason = unreachable.has(code)
    ? reasonOf(code)
    : cause instanceof Error
      ? cause.message
      : 'unknown error';
  return new SallyportError('engine_unreachable', `no engine at ${endpoint}: ${reason}`, options);
}

function sshError(endpoint: string, cause: SshError): SallyportError {
  const host = endpoint.replace(/^ssh:\/\//, '');
  return new SallyportError('engine_unreachable', `no engine at ${endpoint}: ssh: ${cause.message}`, {
    cause,
    details: { endpoint },
    advice: `Make \`ssh ssh://${host} docker version\` work by hand first: known host key, log-in without a prompt.`,
  });
}

function reasonOf(code: string): string {
  switch (code) {
    case 'ENOENT':
    case 'ENOTDIR':
      return 'there is no socket';
    case 'ECONNREFUSED':
      return 'connection refused';
    case 'ECONNRESET':
    case 'EPIPE':
      return 'the connection was lost';
    default:
      return code;
  }
}

/** `notFound` lets an operation say what a 404 means for it: a missing image is not a missing container. */
export function statusError(
  call: string,
  status: number,
  message: string,
  notFound: ErrorCode = 'engine_not_found',
): SallyportError {
  const details = { call, status };
  const text = `${call}: ${message}`;
  if (isDiskFull(message)) return new SallyportError('disk_full', text, { details });
  if (status === 404) return new SallyportError(notFound, text, { details });
  if (status === 409 || isNameInUse(message)) return new SallyportError('engine_conflict', text, { details });
  return new SallyportError('engine_failed', text, { details });
}

/** The engine has no code for this one: it passes the kernel's words on, with a 500 or inside a progress stream. */
export function isDiskFull(message: string): boolean {
  return /no space left on device|disk quota exceeded/i.test(message);
}

/** Podman's answer to a name whose container is being made at this moment is a 500; a little later it is a 409. */
function isNameInUse(message: string): boolean {
  return /\bname\b.* is already in use\b/i.test(message);
}

const maxErrorBytes = 64 * 1024;

/** The engine's own words from an error response; bounded, and never throws. */
export async function readErrorMessage(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      length += chunk.length;
      if (length > maxErrorBytes) break;
      chunks.push(chunk);
    }
  } catch {
    // The status line is what counts; a body that breaks off adds nothing.
  }
  const text = Buffer.concat(chunks).toString('utf8').trim();
  try {
    const body = JSON.parse(text) as { message?: unknown };
    if (typeof body.message === 'string') return body.message;
  } catch {
    // Not JSON: the plain text is the message.
  }
  return text === '' ? `HTTP ${response.statusCode ?? 0}` : text;
}
