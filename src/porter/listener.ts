/** An address inside the sandbox at which porter listens for us. */

import { deferred } from '../lib/deferred.ts';
import { SallyportError } from '../protocol/errors.ts';
import type { OnQuestion } from './dns-questions.ts';
import { frameType } from './frame.ts';
import { firstPorterStream } from './greeting.ts';
import { type PorterLink, type StreamOwner, violation } from './link.ts';
import { PayloadReader } from './payload.ts';
import { targetKind } from './socket-target.ts';
import type { Tunnel } from './tunnel.ts';

export interface Arrival {
  readonly listener: Listener;
  /** Empty for a Unix socket. It is what the sandbox says of itself. */
  readonly peerAddress: string;
  readonly peerPort: number;
}

export type OnConnection = (tunnel: Tunnel, arrival: Arrival) => void;

/** What is done with what arrives. Without either it is refused. */
export interface Receiver {
  readonly onConnection?: OnConnection;
  readonly onQuestion?: OnQuestion;
}

export interface KnownListener {
  readonly stream: number;
  readonly kind: 'tcp' | 'path' | 'dns';
  /** As it was asked for: an address, or the path of a Unix socket. */
  readonly address: string;
  readonly port: number;
}

export const maxListeners = 64;
const maxAddressCharacters = 128;

export class Listener implements StreamOwner {
  readonly stream: number;
  readonly address: string;
  readonly receiver: Receiver;
  /** Resolves when the address is bound; rejects with `listen_failed`. */
  readonly listening: Promise<void>;
  readonly #link: PorterLink;
  readonly #onOver: () => void;
  readonly #listening = deferred<void>();
  readonly #closed = deferred<void>();
  #port: number;
  #closing = false;
  #over = false;

  constructor(
    link: PorterLink,
    place: { readonly stream: number; readonly address: string; readonly port: number },
    receiver: Receiver,
    onOver: () => void,
  ) {
    this.#link = link;
    this.stream = place.stream;
    this.address = place.address;
    this.#port = place.port;
    this.receiver = receiver;
    this.#onOver = onOver;
    this.listening = this.#listening.promise;
    this.listening.catch(() => {});
  }

  /** The one that was chosen, where 0 was asked for. */
  get port(): number {
    return this.#port;
  }

  /** True from `close` on: what had arrived before porter heard of it is refused. */
  get isClosing(): boolean {
    return this.#closing;
  }

  /** Resolves when the address is free. Connections that were made through it go on. Idempotent. */
  async close(): Promise<void> {
    if (!this.#closing && !this.#over) this.#link.send(frameType.unlisten, this.stream);
    this.#closing = true;
    await this.#closed.promise;
  }

  onFrame(type: number, bytes: Buffer): void {
    const payload = new PayloadReader(bytes);
    switch (type) {
      case frameType.listening:
        this.#port = payload.u16();
        payload.done();
        this.#listening.resolve();
        return;
      case frameType.failed: {
        const errno = payload.u32();
        const reason = payload.text().slice(0, 200);
        this.fail(new SallyportError('listen_failed', `${this.address}: ${reason}`, { details: { errno } }));
        return;
      }
      case frameType.unlistened:
        if (!this.#closing) throw violation('a listener that ended by itself');
        this.#finish();
        return;
      default:
        throw violation(`frame ${type} on a listener`);
    }
  }

  fail(error: SallyportError): void {
    this.#listening.reject(error);
    this.#finish();
  }

  #finish(): void {
    if (this.#over) return;
    this.#over = true;
    this.#link.disown(this.stream);
    this.#onOver();
    this.#closed.resolve();
  }
}

export function readListeners(payload: PayloadReader): readonly KnownListener[] {
  const count = payload.u32();
  if (count > maxListeners) throw violation(`${count} listeners`);
  const list: KnownListener[] = [];
  for (let index = 0; index < count; index++) {
    const stream = payload.u32();
    const kind = payload.u32();
    const address = payload.text().slice(0, maxAddressCharacters);
    const port = payload.u16();
    if (kind < targetKind.tcp || kind > targetKind.dns) throw violation(`a listener of kind ${kind}`);
    list.push({ stream, kind: kind === 1 ? 'tcp' : kind === 2 ? 'path' : 'dns', address, port });
  }
  payload.done();
  requireHostStreams(list);
  return list;
}

/** What an earlier host asked for has a number that a host gives, and each its own. */
export function requireHostStreams(list: readonly { readonly stream: number }[]): void {
  const streams = new Set(list.map(({ stream }) => stream));
  if (streams.size < list.length) throw violation('a stream that is listed twice');
  for (const stream of streams)
    if (stream === 0 || stream >= firstPorterStream) throw violation(`a list with stream ${stream}`);
}
