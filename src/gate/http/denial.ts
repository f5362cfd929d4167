/** What a client inside is told when a request does not go through: JSON that an agent can read and act on. */

import { isSallyportError } from '../../protocol/errors.ts';
import type { Denied } from '../contract.ts';
import { StreamEnded } from './byte-reader.ts';
import { CertificateRefused } from './upstream.ts';
import { HttpViolation, type ViolationCode } from './violation.ts';

export interface Refusal {
  readonly status: number;
  readonly code: string;
  readonly message: string;
  /** The command that would allow it, or what else to do. */
  readonly advice: string;
}

/** A request that the credentials do not let through: a phantom in a wrong place, a secret that is gone, a spent budget. */
export class CredentialRefused extends Error {
  override readonly name = 'CredentialRefused';
  readonly code: string;
  readonly advice: string;

  constructor(code: string, message: string, advice: string) {
    super(message);
    this.code = code;
    this.advice = advice;
  }
}

const statusOf: Partial<Record<ViolationCode, number>> = {
  bad_response: 502,
  head_too_large: 431,
  head_too_slow: 408,
  host_mismatch: 403,
  target_refused: 403,
  upgrade_refused: 403,
  connect_refused: 403,
  ambiguous_path: 403,
  override_refused: 403,
};

export function refusalOfDenied({ code, reason, advice }: Denied): Refusal {
  return { status: 403, code, message: reason, advice };
}

/** SECURITY: nothing of the request and no secret is repeated; only words of our own. What the TLS library says has names that the server chose. */
export function refusalOfError(error: unknown): Refusal {
  if (error instanceof HttpViolation) {
    const { code, message } = error;
    return { status: statusOf[code] ?? 400, code, message, advice: adviceFor(code) };
  }
  if (error instanceof CredentialRefused) {
    const { code, message, advice } = error;
    return { status: 403, code, message, advice };
  }
  if (error instanceof CertificateRefused) {
    return {
      status: 502,
      code: 'upstream_certificate',
      message: `the server's certificate is not accepted (${error.code})`,
      advice: 'Nothing was sent. If the server has a certificate of your own CA, add that CA to the gate.',
    };
  }
  if (isSallyportError(error)) {
    // The session judges addresses after the name is resolved, and says so by an error.
    const denied = error.code === 'egress_denied';
    const code = typeof error.details['code'] === 'string' ? error.details['code'] : error.code;
    return { status: denied ? 403 : 502, code, message: error.message, advice: error.advice };
  }
  return {
    status: 502,
    code: 'upstream_failed',
    message:
      error instanceof StreamEnded
        ? 'the server closed the connection before it had answered'
        : 'the server cannot be reached, or the connection to it broke',
    advice: 'Try again; `sally net log` shows what was reached.',
  };
}

function adviceFor(code: ViolationCode): string {
  switch (code) {
    case 'host_mismatch':
      return 'Name the same host in the URL, in Host and in the connection.';
    case 'upgrade_refused':
      return 'Use HTTP/1.1 as it is, HTTP/2 within TLS, or a WebSocket.';
    case 'connect_refused':
      return 'Open one tunnel from the proxy itself.';
    case 'ambiguous_path':
      return 'Write the path without dot segments, empty segments, parameters after a semicolon and needless encoding.';
    case 'override_refused':
      return 'Send the request with the method and the path that it means, without X-HTTP-Method-Override, X-Original-URL and the like.';
    case 'bad_response':
      return 'The server answered with something that is not HTTP/1.1; nothing of it was passed on.';
    default:
      return 'Send the request as RFC 9112 has it.';
  }
}

export function refusalBody(
  { code, message, advice }: Refusal,
  destination: { readonly host: string; readonly port: number } | undefined,
  rule?: string,
): Buffer {
  const where = destination === undefined ? {} : { host: destination.host, port: destination.port };
  const error = { code, ...where, ...(rule === undefined ? {} : { rule }), message, allow: advice };
  return Buffer.from(`${JSON.stringify({ error })}\n`);
}
