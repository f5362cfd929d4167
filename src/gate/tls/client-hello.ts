/** Waits for a ClientHello on a connection. What was read is given back: no byte is lost, whatever it turns out to be. */

import type { Duplex } from 'node:stream';
import type { Destination } from '../contract.ts';
import { readAuthority } from '../http/authority.ts';
import { ByteReader } from '../http/byte-reader.ts';
import { type HelloFacts, mostHelloBytes, parseClientHello, TlsViolation } from './parse-client-hello.ts';

export interface ClientHello extends HelloFacts {
  readonly bytes: Buffer;
}

export interface HelloLimits {
  readonly timeoutMs: number;
  readonly maxBytes: number;
  /** Whether bytes that are no TLS are enough for the caller. Absent: any are. */
  readonly isEnough?: (notTls: Buffer) => boolean;
}

const usualLimits: HelloLimits = { timeoutMs: 15_000, maxBytes: mostHelloBytes };

/** `notTls`: what came, also nothing, when the client closed first. A malformed or slow hello throws a `TlsViolation`. */
export async function readClientHello(
  client: Duplex,
  limits: HelloLimits = usualLimits,
): Promise<ClientHello | { readonly notTls: Buffer }> {
  const reader = new ByteReader(client);
  let timer: NodeJS.Timeout | undefined;
  const expired = new Promise<never>((_resolve, reject) => {
    const tooSlow = (): void =>
      reject(new TlsViolation(`no whole ClientHello or request line within ${limits.timeoutMs} ms`));
    timer = setTimeout(tooSlow, limits.timeoutMs);
  });
  const whole = collect(reader, limits);
  // Whichever loses the race has no other reader.
  whole.catch(() => {});
  try {
    return await Promise.race([whole, expired]);
  } finally {
    clearTimeout(timer);
    reader.release();
  }
}

async function collect(
  reader: ByteReader,
  { maxBytes, isEnough = () => true }: HelloLimits,
): Promise<ClientHello | { readonly notTls: Buffer }> {
  let bytes: Buffer = Buffer.alloc(0);
  for (;;) {
    const piece = await reader.some(mostHelloBytes);
    if (piece === undefined) return { notTls: bytes };
    bytes = Buffer.concat([bytes, piece]);
    const parsed = parseClientHello(bytes);
    if (parsed.state === 'more' || (parsed.state === 'not-tls' && !isEnough(bytes))) {
      if (bytes.length >= maxBytes) throw new TlsViolation('the first message is too large');
      continue;
    }
    const all = Buffer.concat([bytes, reader.release()]);
    return parsed.state === 'not-tls' ? { notTls: all } : { ...parsed.facts, bytes: all };
  }
}

export interface ServerNameProblem {
  readonly code: 'sni_missing' | 'sni_mismatch';
  readonly reason: string;
}

/** Whom the client greets must be whom it asked to be connected to. An address has no name to be greeted by. */
export function serverNameProblem(hello: HelloFacts, authority: Destination): ServerNameProblem | undefined {
  const { serverName } = hello;
  if (serverName === undefined) {
    if (authority.isAddress) return undefined;
    return {
      code: 'sni_missing',
      reason: `the TLS greeting names no server, but ${authority.host} was asked for`,
    };
  }
  return canonical(serverName) === authority.host
    ? undefined
    : { code: 'sni_mismatch', reason: `the TLS greeting names another server than ${authority.host}` };
}

function canonical(serverName: string): string | undefined {
  try {
    return readAuthority(serverName, 443).host;
  } catch {
    return undefined;
  }
}
