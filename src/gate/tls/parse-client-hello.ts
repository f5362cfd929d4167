/**
 * The first message of a TLS client (RFC 8446 4.1.2), read as far as the gate needs it: which name, which protocols. It may be
 * split over any number of records and packets. Everything is bounded, and what is malformed is refused.
 */

export class TlsViolation extends Error {
  override readonly name = 'TlsViolation';
}

export interface HelloFacts {
  /** As sent, in lower case. Absent where the client named none. */
  readonly serverName?: string;
  readonly alpn: readonly string[];
}

export type HelloState =
  | { readonly state: 'more' }
  | { readonly state: 'not-tls' }
  | { readonly state: 'whole'; readonly facts: HelloFacts };

export const mostHelloBytes = 64 * 1024;
const mostRecordBytes = 2 ** 14;
const handshakeRecord = 22;
const clientHello = 1;
const serverNameExtension = 0;
const alpnExtension = 16;

/** `bytes` is what has come so far. */
export function parseClientHello(bytes: Buffer): HelloState {
  if (bytes.length === 0) return { state: 'more' };
  if (bytes[0] !== handshakeRecord) return sortOldHello(bytes);
  if (bytes.length > 1 && bytes[1] !== 3) return { state: 'not-tls' };
  const message = joinRecords(bytes);
  if (message.length > 0 && message[0] !== clientHello)
    throw new TlsViolation('the first message is no ClientHello');
  if (message.length < 4) return moreOf(bytes);
  const length = message.readUIntBE(1, 3);
  if (length > mostHelloBytes) throw new TlsViolation('the ClientHello is too large');
  if (message.length < 4 + length) return moreOf(bytes);
  if (message.length > 4 + length) throw new TlsViolation('something follows the ClientHello in its record');
  return { state: 'whole', facts: readHello(new Fields(message.subarray(4))) };
}

/** A hello in the form of SSL 2, which servers still take, for TLS 1.0 to 1.2 (RFC 5246 E.2). It names no server. */
function sortOldHello(bytes: Buffer): HelloState {
  const [length = 0, , type = clientHello, major = 3] = bytes;
  if (length < 0x80 || type !== clientHello || major !== 3) return { state: 'not-tls' };
  if (bytes.length < 4) return { state: 'more' };
  throw new TlsViolation('the ClientHello has the form of SSL 2');
}

function moreOf(bytes: Buffer): HelloState {
  if (bytes.length >= mostHelloBytes) throw new TlsViolation('the ClientHello is too large');
  return { state: 'more' };
}

/** The content of all whole records and of the last one as far as it has come. */
function joinRecords(bytes: Buffer): Buffer {
  const parts: Buffer[] = [];
  for (let at = 0; at + 5 <= bytes.length; ) {
    if (bytes[at] !== handshakeRecord || bytes[at + 1] !== 3) {
      throw new TlsViolation('the ClientHello is interrupted by another record');
    }
    const length = bytes.readUInt16BE(at + 3);
    if (length === 0 || length > mostRecordBytes)
      throw new TlsViolation('a TLS record has an impossible length');
    parts.push(bytes.subarray(at + 5, at + 5 + length));
    at += 5 + length;
  }
  return Buffer.concat(parts);
}

function readHello(hello: Fields): HelloFacts {
  hello.skip(2 + 32);
  hello.block(1, 32);
  if (hello.block(2).length % 2 !== 0) throw malformed();
  hello.block(1);
  const seen = new Set<number>();
  let facts: HelloFacts = { alpn: [] };
  // Old clients have no extensions at all.
  if (hello.atEnd) return facts;
  const extensions = new Fields(hello.block(2));
  if (!hello.atEnd) throw malformed();
  while (!extensions.atEnd) {
    const type = extensions.number(2);
    const data = new Fields(extensions.block(2));
    // Two of a kind: the server may take the other one.
    if (seen.has(type)) throw new TlsViolation('an extension of the ClientHello is there twice');
    seen.add(type);
    if (type === serverNameExtension) facts = { ...facts, serverName: readServerName(data) };
    if (type === alpnExtension) facts = { ...facts, alpn: readAlpn(data) };
  }
  return facts;
}

function readServerName(data: Fields): string {
  const list = new Fields(data.block(2));
  if (!data.atEnd || list.number(1) !== 0) throw malformed();
  const name = list.block(2, 255).toString('latin1');
  if (!list.atEnd || !/^[\x21-\x7e]+$/.test(name)) throw malformed();
  return name.toLowerCase();
}

function readAlpn(data: Fields): readonly string[] {
  const list = new Fields(data.block(2));
  if (!data.atEnd) throw malformed();
  const names: string[] = [];
  while (!list.atEnd) {
    const name = list.block(1);
    if (name.length === 0) throw malformed();
    names.push(name.toString('latin1'));
  }
  return names;
}

const malformed = (): TlsViolation => new TlsViolation('the ClientHello is malformed');

class Fields {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get atEnd(): boolean {
    return this.#at === this.#bytes.length;
  }

  skip(length: number): void {
    this.#take(length);
  }

  number(size: number): number {
    return this.#take(size).readUIntBE(0, size);
  }

  /** Bytes after their own length, which takes `size` bytes. */
  block(size: number, most = Number.POSITIVE_INFINITY): Buffer {
    const length = this.number(size);
    if (length > most) throw malformed();
    return this.#take(length);
  }

  #take(length: number): Buffer {
    if (this.#at + length > this.#bytes.length) throw malformed();
    this.#at += length;
    return this.#bytes.subarray(this.#at - length, this.#at);
  }
}
