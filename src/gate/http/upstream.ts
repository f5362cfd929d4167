/**
 * The connection to the server behind the gate: dialled by the session, which judges the address, and verified by TLS where
 * the scheme says so. One belongs to one client connection at a time.
 */

import type { Duplex } from 'node:stream';
import tls from 'node:tls';
import type { Allowed, Destination, EgressSession } from '../contract.ts';
import { ByteReader } from './byte-reader.ts';

export interface UpstreamTls {
  /** The roots that are trusted. Absent: those that Node has. */
  readonly context?: tls.SecureContext;
}

export class CertificateRefused extends Error {
  override readonly name = 'CertificateRefused';
  /** As Node and OpenSSL name it, such as `CERT_HAS_EXPIRED`. */
  readonly code: string;

  constructor(cause: NodeJS.ErrnoException) {
    super('the certificate of the server is not accepted', { cause });
    this.code = cause.code ?? 'unknown';
  }
}

const handshakeMs = 20_000;

/** TLS comes in records of 16 KiB. With room for one alone a stream is stopped and started for each of them. */
export const tlsBufferBytes = 128 * 1024;

export class Upstream {
  readonly stream: Duplex;
  readonly reader: ByteReader;
  readonly destination: Destination;
  readonly scheme: 'http' | 'https';
  /** Nothing that was said on it counts for what is said next. */
  isShareable = true;
  /** When it was last given back, for connections that a server may be about to close. */
  idleSinceMs = 0;
  #gone = false;

  constructor(stream: Duplex, destination: Destination, scheme: 'http' | 'https') {
    this.stream = stream;
    this.destination = destination;
    this.scheme = scheme;
    this.reader = new ByteReader(stream);
    const gone = (): void => {
      this.#gone = true;
    };
    stream.on('error', gone);
    stream.on('end', gone);
    stream.on('close', gone);
  }

  /** Bytes that nobody asked for make it as useless as an end. */
  get usable(): boolean {
    return !this.#gone && !this.stream.destroyed && this.reader.bufferedBytes === 0;
  }

  readonly close = (): void => {
    this.stream.destroy();
  };
}

export async function openUpstream(
  session: EgressSession,
  decision: Allowed,
  upstreamTls: UpstreamTls,
  signal: AbortSignal,
): Promise<Upstream> {
  const { destination, scheme } = decision.attempt;
  const raw = await session.dial(decision, signal);
  const stream = scheme === 'https' ? await secured(raw, destination, upstreamTls, signal) : raw;
  return new Upstream(stream, destination, scheme === 'https' ? 'https' : 'http');
}

async function secured(
  raw: Duplex,
  { host, isAddress }: Destination,
  { context }: UpstreamTls,
  signal: AbortSignal,
): Promise<Duplex> {
  // Node hands `highWaterMark` on; its types do not know.
  const options: tls.ConnectionOptions & { readonly highWaterMark: number } = {
    socket: raw,
    ...(isAddress ? { host } : { servername: host }),
    checkServerIdentity: (_name, certificate) => tls.checkServerIdentity(host, certificate),
    ALPNProtocols: ['http/1.1'],
    minVersion: 'TLSv1.2',
    highWaterMark: tlsBufferBytes,
    ...(context === undefined ? {} : { secureContext: context }),
  };
  const socket = tls.connect(options);
  return await new Promise((resolve, reject) => {
    const settle = (act: () => void): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', onAbort);
      socket.off('error', onError);
      socket.off('secureConnect', onSecure);
      act();
    };
    const fail = (error: Error): void =>
      settle(() => {
        socket.on('error', () => {});
        socket.destroy();
        raw.destroy();
        reject(error);
      });
    const onAbort = (): void => fail(new Error('the request was abandoned'));
    const onError = (error: NodeJS.ErrnoException): void =>
      fail(isCertificateError(error) ? new CertificateRefused(error) : error);
    const onSecure = (): void => settle(() => resolve(socket));
    const timer = setTimeout(() => fail(new Error('the TLS handshake took too long')), handshakeMs);
    signal.addEventListener('abort', onAbort, { once: true });
    socket.once('error', onError);
    socket.once('secureConnect', onSecure);
  });
}

/** OpenSSL's verify results as Node names them, and its own word for a name that does not fit. */
function isCertificateError(error: NodeJS.ErrnoException): boolean {
  const code = error.code ?? '';
  return (
    code === 'ERR_TLS_CERT_ALTNAME_INVALID' ||
    /^(CERT_|DEPTH_|SELF_SIGNED_|UNABLE_TO_|INVALID_(CA|PURPOSE)|HOSTNAME_|CRL_)/.test(code)
  );
}
