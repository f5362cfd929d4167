/** SOCKS5 as programs inside speak it: names are resolved here, never there. Only CONNECT; nothing listens and no UDP passes. */

import type { Duplex } from 'node:stream';
import { formatAddress } from '../policy/egress/address.ts';
import { parseBareHost } from '../policy/egress/host.ts';
import type { Denied, Destination } from './contract.ts';
import { nextChunk } from './dial.ts';
import { type StreamParts, serveStream } from './stream.ts';

const version = 5;
const reply = { ok: 0, failed: 1, denied: 2, unreachable: 4, command: 7, address: 8 } as const;
const greetingMs = 10_000;

/** `first` is what was read already. */
export async function serveSocks(client: Duplex, first: Buffer, parts: StreamParts): Promise<void> {
  const reader = new Reader(client, first, AbortSignal.any([parts.signal, AbortSignal.timeout(greetingMs)]));
  const asked = await ask(client, reader);
  if (asked === undefined) return;
  reader.giveBack();
  await serveStream(
    client,
    {
      entrance: 'socks',
      destination: asked,
      accept: () => answer(client, reply.ok),
      refuse: (why: Denied | { readonly failed: string }) =>
        end(client, 'failed' in why ? reply.unreachable : reply.denied),
    },
    parts,
  );
}

async function ask(client: Duplex, reader: Reader): Promise<Destination | undefined> {
  const greeting = await reader.take(2);
  const methods = await reader.take(greeting?.[1] ?? 0);
  if (greeting?.[0] !== version || methods === undefined) return drop(client);
  if (!methods.includes(0)) {
    client.end(Buffer.from([version, 255]));
    return undefined;
  }
  client.write(Buffer.from([version, 0]));
  const head = await reader.take(4);
  if (head === undefined || head[0] !== version) return drop(client);
  if (head[1] !== 1) return end(client, reply.command);
  const host = await readAddress(reader, head[3]);
  const port = (await reader.take(2))?.readUInt16BE(0);
  if (host === undefined || port === undefined || port === 0) return end(client, reply.address);
  const read = parseBareHost(host);
  return 'problem' in read ? end(client, reply.address) : { ...read, port };
}

async function readAddress(reader: Reader, kind: number | undefined): Promise<string | undefined> {
  if (kind === 3) {
    const length = (await reader.take(1))?.readUInt8(0);
    return length === undefined ? undefined : (await reader.take(length))?.toString('latin1');
  }
  if (kind !== 1 && kind !== 4) return undefined;
  const bytes = await reader.take(kind === 1 ? 4 : 16);
  if (bytes === undefined) return undefined;
  return formatAddress({ family: kind === 1 ? 4 : 6, value: BigInt(`0x${bytes.toString('hex')}`) });
}

function answer(client: Duplex, code: number): void {
  client.write(Buffer.from([version, code, 0, 1, 0, 0, 0, 0, 0, 0]));
}

function end(client: Duplex, code: number): undefined {
  client.end(Buffer.from([version, code, 0, 1, 0, 0, 0, 0, 0, 0]));
  client.resume();
}

function drop(client: Duplex): undefined {
  client.destroy();
}

class Reader {
  readonly #stream: Duplex;
  readonly #signal: AbortSignal;
  #bytes: Buffer;

  constructor(stream: Duplex, first: Buffer, signal: AbortSignal) {
    this.#stream = stream;
    this.#bytes = first;
    this.#signal = signal;
  }

  /** Undefined: the stream ended, or took too long. */
  async take(count: number): Promise<Buffer | undefined> {
    while (this.#bytes.length < count) {
      const chunk = await nextChunk(this.#stream, this.#signal);
      if (chunk === undefined) return undefined;
      this.#bytes = Buffer.concat([this.#bytes, chunk]);
    }
    const taken = this.#bytes.subarray(0, count);
    this.#bytes = this.#bytes.subarray(count);
    return taken;
  }

  giveBack(): void {
    if (this.#bytes.length > 0) this.#stream.unshift(this.#bytes);
    this.#bytes = Buffer.alloc(0);
  }
}
