/**
 * A client that speaks HTTP/2 within an opened TLS connection. Each stream is a request by itself and goes through the same
 * exchange as one of HTTP/1.1; the server behind the gate is spoken to in HTTP/1.1.
 */

import http2 from 'node:http2';
import type { Duplex } from 'node:stream';
import tls from 'node:tls';
import type { Destination, EgressSession } from '../contract.ts';
import { readAuthority, sameDestination, writeAuthority } from '../http/authority.ts';
import { StreamEnded } from '../http/byte-reader.ts';
import { type Refusal, refusalBody, refusalOfError } from '../http/denial.ts';
import { type Answer, type ClientRequest, type ExchangeOptions, Exchanges } from '../http/exchange.ts';
import type { Framing } from '../http/framing.ts';
import { isFieldValue, isTarget, type ResponseHead } from '../http/head.ts';
import { endToEnd, type HeaderField, Headers } from '../http/headers.ts';
import { defaultPorts } from '../http/target.ts';
import { HttpViolation } from '../http/violation.ts';

const settings: http2.Settings = {
  maxConcurrentStreams: 100,
  maxHeaderListSize: 64 * 1024,
  enablePush: false,
};

export interface Http2Options extends ExchangeOptions {
  readonly authority: Destination;
}

export async function serveHttp2(
  socket: Duplex,
  session: EgressSession,
  options: Http2Options,
): Promise<void> {
  const exchanges = new Exchanges(session, options);
  // Node clears this only on sockets that its own TLS server made, and waits for it for ever on others.
  if (socket instanceof tls.TLSSocket) Object.assign(socket, { secureConnecting: false });
  const peer = http2.performServerHandshake(socket, {
    settings,
    maxSettings: 32,
    maxSessionInvalidFrames: 100,
  });
  const stop = (): void => peer.destroy();
  const calm = (): void => {
    // One that is gone already throws, and its 'close' comes later: it would take the whole thread with it.
    if (!peer.destroyed) peer.goaway(http2.constants.NGHTTP2_ENHANCE_YOUR_CALM);
    peer.destroy();
  };
  const leave = options.budget?.http2(calm);
  options.signal.addEventListener('abort', stop, { once: true });
  peer.on('error', () => {});
  peer.on('ping', () => options.budget?.control());
  peer.on('remoteSettings', () => options.budget?.control());
  peer.on('stream', (stream: http2.ServerHttp2Stream, _headers: unknown, flags: number, raw: string[]) => {
    stream.on('error', () => {});
    // What came in one packet with the reset that was one too many.
    if (peer.destroyed) return;
    if (stream.closed) {
      options.budget?.reset();
      return;
    }
    // The client may open it again: nothing was done with it.
    if (options.budget?.isFull === true) {
      stream.close(http2.constants.NGHTTP2_REFUSED_STREAM);
      return;
    }
    void serve(stream, raw, flags, exchanges, options);
  });
  await new Promise<void>((resolve) => peer.once('close', resolve));
  leave?.();
  options.signal.removeEventListener('abort', stop);
  exchanges.close();
}

async function serve(
  stream: http2.ServerHttp2Stream,
  raw: readonly string[],
  flags: number,
  exchanges: Exchanges,
  { authority, budget }: Http2Options,
): Promise<void> {
  const answer = new StreamAnswer(stream, raw);
  const gone = new AbortController();
  stream.once('close', () => {
    gone.abort();
    if (!answer.complete) budget?.reset();
  });
  try {
    const ended = (flags & http2.constants.NGHTTP2_FLAG_END_STREAM) !== 0;
    const end = await exchanges.perform(
      { ...understand(stream, raw, ended, authority), signal: gone.signal },
      answer,
    );
    // The rest of a request that nobody wants any more; the answer is out.
    if (end === 'over' && !stream.closed)
      stream.close(
        answer.complete ? http2.constants.NGHTTP2_NO_ERROR : http2.constants.NGHTTP2_INTERNAL_ERROR,
      );
  } catch (error) {
    if (answer.begun) stream.close(http2.constants.NGHTTP2_INTERNAL_ERROR);
    else await answer.refuse(refusalOfError(error), authority).catch(() => stream.close());
  }
}

function understand(
  stream: http2.ServerHttp2Stream,
  raw: readonly string[],
  ended: boolean,
  authority: Destination,
): ClientRequest {
  const pairs = raw.flatMap((name, index) =>
    index % 2 === 0 ? [[name, raw[index + 1] ?? ''] as const] : [],
  );
  const pseudo = new Map(pairs.filter(([name]) => name.startsWith(':')));
  const headers = joinCookies(pairs.filter(([name]) => !name.startsWith(':')));
  const method = pseudo.get(':method') ?? '';
  const path = pseudo.get(':path') ?? '';
  if (method === 'CONNECT') throw new HttpViolation('connect_refused', 'there is no tunnel within a tunnel');
  if (!isTarget(path) || !path.startsWith('/') || path.includes('#')) {
    if (path !== '*' || method !== 'OPTIONS')
      throw new HttpViolation('target_refused', 'the path is malformed');
  }
  if (pseudo.get(':scheme') !== 'https') throw new HttpViolation('target_refused', 'the scheme is not https');
  const hosts = [
    ...(pseudo.has(':authority') ? [pseudo.get(':authority') ?? ''] : []),
    ...headers.all('host'),
  ];
  if (hosts.length === 0) throw new HttpViolation('host_missing', 'the request names no host');
  if (!hosts.every((host) => sameDestination(readAuthority(host, defaultPorts.https), authority))) {
    throw new HttpViolation('host_mismatch', 'the request and the connection name different hosts');
  }
  for (const [, value] of headers.fields) {
    if (!isFieldValue(value)) throw new HttpViolation('bad_request', 'a header field has control characters');
  }
  const framing = framingOf(headers, ended);
  return {
    method,
    path,
    scheme: 'https',
    destination: authority,
    headers: endToEnd(headers).without(new Set(['host'])),
    authority: writeAuthority(authority, defaultPorts.https),
    framing,
    body: exactly(stream, framing),
  };
}

/** HTTP/2 may split cookies over fields; HTTP/1.1 has one (RFC 9113 8.2.3). */
function joinCookies(fields: readonly HeaderField[]): Headers {
  const cookies = fields.filter(([name]) => name === 'cookie').map(([, value]) => value);
  const others = fields.filter(([name]) => name !== 'cookie');
  return new Headers(cookies.length === 0 ? others : [...others, ['cookie', cookies.join('; ')]]);
}

function framingOf(headers: Headers, ended: boolean): Framing {
  const lengths = headers.all('content-length');
  const [length] = lengths;
  if (lengths.length > 1 || (length !== undefined && !/^(0|[1-9]\d{0,14})$/.test(length))) {
    throw new HttpViolation('framing_ambiguous', 'content-length is no plain number');
  }
  if (ended) return { kind: 'none' };
  return length === undefined ? { kind: 'chunked' } : { kind: 'length', bytes: Number(length) };
}

/** A body of another length than announced would shift where the server looks for the next request. */
async function* exactly(stream: http2.ServerHttp2Stream, framing: Framing): AsyncGenerator<Buffer> {
  if (framing.kind === 'none') return;
  let bytes = 0;
  for await (const piece of stream as AsyncIterable<Buffer>) {
    bytes += piece.length;
    if (framing.kind === 'length' && bytes > framing.bytes) break;
    yield piece;
  }
  if (framing.kind === 'length' && bytes !== framing.bytes) {
    throw new HttpViolation('framing_ambiguous', 'the body has another length than announced');
  }
}

class StreamAnswer implements Answer {
  readonly #stream: http2.ServerHttp2Stream;
  readonly #isHead: boolean;
  #begun = false;
  complete = false;

  constructor(stream: http2.ServerHttp2Stream, raw: readonly string[]) {
    this.#stream = stream;
    this.#isHead = raw[raw.indexOf(':method') + 1] === 'HEAD';
  }

  get begun(): boolean {
    return this.#begun;
  }

  async interim({ status, headers }: ResponseHead): Promise<void> {
    if (status !== 100) this.#stream.additionalHeaders({ ...plain(endToEnd(headers)), ':status': status });
    else this.#stream.additionalHeaders({ ':status': 100 });
  }

  async begin(status: number, _reason: string, headers: Headers, framing: Framing): Promise<void> {
    this.#gone();
    this.#begun = true;
    const length = framing.kind === 'length' ? { 'content-length': String(framing.bytes) } : {};
    const endStream = framing.kind === 'none';
    this.#stream.respond({ ...plain(headers), ...length, ':status': status }, { endStream });
  }

  async piece(bytes: Buffer): Promise<void> {
    this.#gone();
    if (this.#stream.write(bytes)) return;
    await new Promise<void>((resolve, reject) => {
      const done = (): void => {
        this.#stream.off('close', gone);
        resolve();
      };
      const gone = (): void => {
        this.#stream.off('drain', done);
        reject(new StreamEnded('the client closed the stream'));
      };
      this.#stream.once('drain', done);
      this.#stream.once('close', gone);
    });
  }

  async end(): Promise<void> {
    this.complete = true;
    if (!this.#stream.writableEnded) this.#stream.end();
  }

  async refuse(refusal: Refusal, destination: Destination, rule?: string): Promise<void> {
    const body = refusalBody(refusal, destination, rule);
    const headers = new Headers([
      ['content-type', 'application/json'],
      ['cache-control', 'no-store'],
      ['x-sallyport-denied', refusal.code],
    ]);
    await this.begin(refusal.status, '', headers, { kind: 'length', bytes: body.length });
    if (!this.#isHead) await this.piece(body);
    await this.end();
  }

  switchTo(): Promise<void> {
    // No such key is ever taken from a stream, so no server is asked for it.
    return Promise.reject(new HttpViolation('bad_response', 'HTTP/2 does not switch'));
  }

  #gone(): void {
    if (this.#stream.destroyed || this.#stream.closed) throw new StreamEnded('the client closed the stream');
  }
}

/** Lower case, several values of a name as a list. */
function plain(headers: Headers): Record<string, string | string[]> {
  const out: Record<string, string | string[]> = {};
  for (const [name, value] of headers.fields) {
    const key = name.toLowerCase();
    const known = out[key];
    out[key] = known === undefined ? value : [...(Array.isArray(known) ? known : [known]), value];
  }
  return out;
}
