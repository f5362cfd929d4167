/**
 * All tunnels and listeners of one link. Keeps the account of the streams that porter opens: their numbers rise, there are
 * at most as many as the protocol says, and each belongs to a listener that was asked for.
 */

import { deadline } from '../lib/deadline.ts';
import { deferred } from '../lib/deferred.ts';
import { SallyportError } from '../protocol/errors.ts';
import { DnsQuestions, type OnQuestion } from './dns-questions.ts';
import { type Frame, frameType } from './frame.ts';
import { firstPorterStream } from './greeting.ts';
import { type PorterLink, violation } from './link.ts';
import { type KnownListener, Listener, type OnConnection, type Receiver, readListeners } from './listener.ts';
import { PayloadReader } from './payload.ts';
import {
  describeTarget,
  encodeTarget,
  type SocketTarget,
  type TcpTarget,
  targetKind,
} from './socket-target.ts';
import { type ConnectOptions, Tunnel } from './tunnel.ts';

const maxAccepted = 1024;
const maxPeerAddressBytes = 64;
const connectTimeoutMs = 10_000;

export class Tunnels {
  readonly #link: PorterLink;
  readonly #inputWindow: number;
  readonly #reserveStream: () => number;
  readonly #questions: DnsQuestions;
  /** `undefined`: known from porter's list, and nobody here wants it yet. */
  readonly #listeners = new Map<number, Listener | undefined>();
  readonly #lists: Array<(list: readonly KnownListener[]) => void> = [];
  #accepted = 0;
  #lastPorterStream = firstPorterStream - 1;

  constructor(link: PorterLink, inputWindow: number, reserveStream: () => number) {
    this.#link = link;
    this.#inputWindow = inputWindow;
    this.#reserveStream = reserveStream;
    this.#questions = new DnsQuestions(link);
  }

  async connect(target: SocketTarget, options: ConnectOptions): Promise<Tunnel> {
    const payload = encodeTarget(target);
    const { timeoutMs = connectTimeoutMs, signal } = options;
    this.#throwIfOver(signal);
    const tunnel = this.#tunnel(this.#reserveStream(), false, () => {});
    this.#link.send(frameType.connect, tunnel.stream, payload);
    const limit = deadline(timeoutMs, signal);
    const place = describeTarget(target);
    limit.signal.addEventListener('abort', () => {
      tunnel.abandon(
        limit.expired()
          ? new SallyportError('tunnel_failed', `${place} did not answer within ${timeoutMs} ms`)
          : new SallyportError('cancelled', `connecting to ${place} was cancelled`),
      );
    });
    try {
      await tunnel.connected;
      return tunnel;
    } finally {
      limit.dispose();
    }
  }

  async listen(target: SocketTarget, onConnection: OnConnection): Promise<Listener> {
    return await this.#listen(target, encodeTarget(target), { onConnection });
  }

  async listenDns(target: TcpTarget, onQuestion: OnQuestion): Promise<Listener> {
    return await this.#listen(target, encodeTarget(target, targetKind.dns), { onQuestion });
  }

  async list(): Promise<readonly KnownListener[]> {
    const answer = deferred<readonly KnownListener[]>();
    this.#lists.push(answer.resolve);
    this.#link.send(frameType.listeners, 0);
    return await this.#link.answered(answer.promise);
  }

  resume(known: KnownListener, receiver: Receiver): Listener {
    return this.#adopt(known, receiver);
  }

  /** False when the frame has nothing to do with tunnels. */
  onUnowned(frame: Frame): boolean {
    const payload = new PayloadReader(frame.payload);
    switch (frame.type) {
      case frameType.accepted:
        this.#onAccepted(frame.stream, payload);
        return true;
      case frameType.question: {
        const listener = this.#arrivedAt(frame.stream, payload);
        this.#questions.onQuestion(frame.stream, payload, listener?.receiver.onQuestion);
        return true;
      }
      case frameType.listenerList:
        this.#onList(payload);
        return true;
      default:
        return false;
    }
  }

  #throwIfOver(signal?: AbortSignal): void {
    if (this.#link.failure !== undefined) throw this.#link.failure;
    if (signal?.aborted === true) throw new SallyportError('cancelled', 'connecting was cancelled');
  }

  #tunnel(stream: number, accepted: boolean, onOver: () => void): Tunnel {
    const tunnel = new Tunnel({
      link: this.#link,
      stream,
      inputWindow: this.#inputWindow,
      onOver,
      accepted,
    });
    this.#link.own(stream, tunnel);
    return tunnel;
  }

  async #listen(target: SocketTarget, payload: Buffer, receiver: Receiver): Promise<Listener> {
    this.#throwIfOver();
    const [address, port] = 'path' in target ? [target.path, 0] : [target.host, target.port];
    const listener = this.#adopt({ stream: this.#reserveStream(), address, port }, receiver);
    this.#link.send(frameType.listen, listener.stream, payload);
    await this.#link.answered(listener.listening);
    return listener;
  }

  #adopt(
    place: { readonly stream: number; readonly address: string; readonly port: number },
    receiver: Receiver,
  ): Listener {
    const listener = new Listener(this.#link, place, receiver, () => this.#listeners.delete(place.stream));
    this.#listeners.set(listener.stream, listener);
    this.#link.own(listener.stream, listener);
    return listener;
  }

  /** Checks the number of a stream that porter opens; the payload begins with the listener's. */
  #arrivedAt(stream: number, payload: PayloadReader): Listener | undefined {
    if (stream <= this.#lastPorterStream) throw violation(`stream ${stream} is not a new one`);
    this.#lastPorterStream = stream;
    const number = payload.u32();
    if (!this.#listeners.has(number)) throw violation(`there is no listener ${number}`);
    const listener = this.#listeners.get(number);
    return listener?.isClosing === true ? undefined : listener;
  }

  #onAccepted(stream: number, payload: PayloadReader): void {
    const listener = this.#arrivedAt(stream, payload);
    const address = payload.bytes();
    const peerPort = payload.u16();
    payload.done();
    if (address.length > maxPeerAddressBytes) throw violation('a peer address that is too long');
    if (this.#accepted === maxAccepted) throw violation('too many connections at once');
    this.#accepted++;
    const tunnel = this.#tunnel(stream, true, () => {
      this.#accepted--;
    });
    const onConnection = listener?.receiver.onConnection;
    if (listener === undefined || onConnection === undefined) {
      tunnel.destroy();
      return;
    }
    try {
      onConnection(tunnel, { listener, peerAddress: address.toString('latin1'), peerPort });
    } catch (cause) {
      tunnel.destroy(
        new SallyportError('tunnel_failed', 'whoever was to take the connection failed', { cause }),
      );
    }
  }

  #onList(payload: PayloadReader): void {
    const waiting = this.#lists.shift();
    if (waiting === undefined) throw violation('a list that nobody asked for');
    const list = readListeners(payload);
    for (const { stream } of list) {
      if (!this.#listeners.has(stream)) this.#listeners.set(stream, undefined);
    }
    waiting(list);
  }
}
