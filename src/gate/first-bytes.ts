/**
 * Sorts a connection by its first bytes: TLS, HTTP, or neither. Every byte that was read is given back.
 *
 * SECURITY: bytes that are neither pass unseen by a `tcp` rule, so whatever a lenient server takes for a request is HTTP here, and
 * the first line is waited for as long as it may become one.
 */

import type { Duplex } from 'node:stream';
import { type ClientHello, readClientHello } from './tls/client-hello.ts';
import { TlsViolation } from './tls/parse-client-hello.ts';

export type FirstBytes =
  | { readonly kind: 'tls'; readonly hello: ClientHello }
  | { readonly kind: 'http' | 'other'; readonly bytes: Buffer };

/** A server that speaks first makes its client wait: without a `tcp` rule that ends here. */
const firstBytesMs = 10_000;
const mostHelloBytes = 64 * 1024;
/** Servers refuse longer request lines. */
const mostLineBytes = 8 * 1024;

/** `other` has no bytes where the client only ended. A slow or malformed start throws a `TlsViolation`. */
export async function readFirstBytes(client: Duplex): Promise<FirstBytes> {
  const hello = await readClientHello(client, {
    timeoutMs: firstBytesMs,
    maxBytes: mostHelloBytes,
    isEnough: (bytes) => sortLine(bytes) !== 'undecided',
  });
  if (!('notTls' in hello)) return { kind: 'tls', hello };
  return { kind: sortLine(hello.notTls) === 'http' ? 'http' : 'other', bytes: hello.notTls };
}

/** A request line, also in lower case; that of HTTP/0.9 has no version. */
const httpLine = /^[a-z_-]+ +(?:\/|https?:)|http\//i;
/** The first character of a method. */
const methodStart = /^[!#$%&'*+.^_`|~0-9a-z-]/i;
/** What some servers take for a space, or skip before a request. */
const isSpace = (byte: number): boolean =>
  (byte > 8 && byte < 14) || (byte > 27 && byte < 33) || byte === 0x85 || byte === 0xa0;
const isBinary = (byte: number): boolean => (byte < 32 && !isSpace(byte)) || byte === 127;

/** Throws a `TlsViolation` for a line that is too long to be waited for. */
function sortLine(bytes: Buffer): 'http' | 'other' | 'undecided' {
  const start = bytes.findIndex((byte) => !isSpace(byte));
  if (start >= 0) {
    const end = bytes.indexOf(10, start);
    const line = bytes.subarray(start, end < 0 ? bytes.length : end);
    const text = line.toString('latin1');
    if (httpLine.test(text)) return 'http';
    if (end >= 0 || !methodStart.test(text) || line.some(isBinary)) return 'other';
  }
  if (bytes.length > mostLineBytes) throw new TlsViolation('the first line is too long');
  return 'undecided';
}

/**
 * Resolves when one side has sent something or has ended: true if that was the server. Nothing is taken from either stream. A server of
 * HTTP has not spoken: one of HTTP/2 sends its settings, and one that waited too long an error.
 */
export async function serverSpeaksFirst(server: Duplex, client: Duplex): Promise<boolean> {
  const side = await firstOf(server, client);
  if (side === client) return false;
  const bytes = server.read() as Buffer | null;
  if (bytes === null) return true;
  server.unshift(bytes);
  return !isHttpAnswer(bytes);
}

const settingsFrame = 4;

/** Of HTTP/1, or the first frame of HTTP/2 (RFC 9113 3.4), as far as it has come. */
function isHttpAnswer(bytes: Buffer): boolean {
  const [first, second = 0, , type = settingsFrame] = bytes;
  if (first === 0 && second === 0 && type === settingsFrame) return true;
  return 'HTTP/'.startsWith(bytes.subarray(0, 5).toString('latin1'));
}

function firstOf(...streams: readonly Duplex[]): Promise<Duplex> {
  return new Promise((resolve) => {
    const signs = ['readable', 'end', 'close', 'error'] as const;
    const stop: (() => void)[] = [];
    for (const stream of streams) {
      const seen = (): void => {
        for (const each of stop) each();
        resolve(stream);
      };
      for (const sign of signs) stream.once(sign, seen);
      stop.push(() => {
        for (const sign of signs) stream.off(sign, seen);
      });
      if (stream.readableLength > 0 || stream.readableEnded || stream.destroyed) return seen();
    }
  });
}
