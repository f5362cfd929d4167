/**
 * One connection through the door, as a duplex stream. Both directions have back-pressure; ending the writable side is a
 * half-close; `destroy` is a reset; a reset by the other side is the error `tunnel_reset`.
 *
 * The stream's number is free when both sides agree that it is over, which each sees by itself: both directions ended, all
 * that was sent was given back; or porter said RESET. Until then this stays the number's owner, also when nobody uses it
 * any more, and holds it to its window.
 */

import { Duplex } from 'node:stream';
import { deferred } from '../lib/deferred.ts';
import { SallyportError } from '../protocol/errors.ts';
import { ByteQueue } from './byte-queue.ts';
import { CreditAccount } from './credit.ts';
import { frameType, maxPayloadBytes } from './frame.ts';
import { type PorterLink, type StreamOwner, violation } from './link.ts';
import { PayloadReader, PayloadWriter } from './payload.ts';

export interface ConnectOptions {
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
}

export interface TunnelState {
  readonly link: PorterLink;
  readonly stream: number;
  readonly inputWindow: number;
  /** Called once, when the number is free. */
  readonly onOver: () => void;
  /** Opened by porter, so there is no answer to wait for. */
  readonly accepted: boolean;
}

const stepBytes = 32 * 1024;
/** Each frame is a write, and each write wakes a chain of processes: as few as may be. */
const frameBytes = maxPayloadBytes;

export class Tunnel extends Duplex implements StreamOwner {
  /** Resolves when the other side has taken the connection; rejects with `tunnel_failed`. */
  readonly connected: Promise<void>;
  readonly #state: TunnelState;
  readonly #connected = deferred<void>();
  readonly #account: CreditAccount;
  readonly #arrived = new ByteQueue();
  #isOpen: boolean;
  #inputCredit: number;
  #unsent: { readonly data: Buffer; readonly done: () => void } | undefined;
  #wanted = false;
  #awaitsRoom = false;
  #endReceived = false;
  #endSent = false;
  #resetSent = false;
  #over = false;

  constructor(state: TunnelState) {
    super({ allowHalfOpen: true, readableHighWaterMark: stepBytes, writableHighWaterMark: frameBytes });
    this.#state = state;
    this.#account = new CreditAccount(state.link, state.stream);
    this.#inputCredit = state.inputWindow;
    this.#isOpen = state.accepted;
    if (state.accepted) this.#connected.resolve();
    this.connected = this.#connected.promise;
    this.connected.catch(() => {});
    // Code inside may reset a connection at any moment: that must never end this process.
    this.on('error', () => {});
  }

  get stream(): number {
    return this.#state.stream;
  }

  /** Not waited for any longer: `connected` rejects with this, and porter is told to drop it. */
  abandon(error: SallyportError): void {
    this.#connected.reject(error);
    this.destroy(error);
  }

  onFrame(type: number, bytes: Buffer): void {
    const payload = new PayloadReader(bytes);
    switch (type) {
      case frameType.connected:
        payload.done();
        this.#open();
        return;
      case frameType.failed:
        this.#onFailed(payload);
        return;
      case frameType.streamOut:
        this.#onData(bytes);
        return;
      case frameType.credit:
        this.#onCredit(payload.u32());
        return;
      case frameType.resetOut:
        this.#onReset(payload.u32());
        return;
      default:
        throw violation(`frame ${type} on a tunnel`);
    }
  }

  fail(error: SallyportError): void {
    this.#finish();
    this.#connected.reject(error);
    this.destroy(error);
  }

  override _read(): void {
    this.#wanted = true;
    this.#deliver();
  }

  override _write(data: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.#unsent = { data, done };
    this.#send();
  }

  /** TLS hands over its records one by one. */
  override _writev(chunks: readonly { readonly chunk: Buffer }[], done: () => void): void {
    this.#unsent = { data: Buffer.concat(chunks.map(({ chunk }) => chunk)), done };
    this.#send();
  }

  override _final(done: () => void): void {
    this.#endSent = true;
    this.#account.flushByTheWay();
    this.#state.link.send(frameType.stream, this.#state.stream);
    done();
    this.#settle();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    const finished = this.#endSent && this.#endReceived && this.#arrived.isEmpty;
    if (!this.#over && !finished) {
      // Before the reset, so that both sides have the same account when it comes.
      this.#account.flushByTheWay();
      this.#resetSent = true;
      this.#state.link.send(frameType.reset, this.#state.stream, new PayloadWriter().u32(0).end());
    }
    this.#arrived.clear();
    this.#unsent = undefined;
    // An error takes its time to make, and nobody waits for one that is open.
    if (!this.#isOpen)
      this.#connected.reject(new SallyportError('tunnel_failed', 'the connection was given up'));
    done(error);
  }

  #open(): void {
    if (this.#isOpen) throw violation('connected twice');
    this.#isOpen = true;
    this.#connected.resolve();
  }

  #onFailed(payload: PayloadReader): void {
    const errno = payload.u32();
    const reason = payload.text().slice(0, 200);
    if (this.#isOpen) throw violation('a connection that failed after it was made');
    this.fail(new SallyportError('tunnel_failed', reason, { details: { errno } }));
  }

  #onData(data: Buffer): void {
    if (!this.#isOpen || this.#endReceived) throw violation('data where none may be');
    if (data.length === 0) {
      this.#endReceived = true;
      this.#account.flushByTheWay();
    } else {
      this.#account.arrived(data.length);
      if (!this.destroyed) this.#arrived.push(data);
    }
    this.#deliver();
  }

  #deliver(): void {
    while (this.#wanted && !this.destroyed) {
      const data = this.#arrived.shift();
      if (data === undefined) break;
      this.#account.taken(data.length);
      this.#wanted = this.push(data);
    }
    if (this.#endReceived && this.#arrived.isEmpty && !this.destroyed) {
      this.#account.flushByTheWay();
      this.push(null);
    }
    this.#settle();
  }

  #onCredit(bytes: number): void {
    this.#inputCredit += bytes;
    if (this.#inputCredit > this.#state.inputWindow) throw violation('more credit than was used');
    this.#send();
    this.#settle();
  }

  #send(): void {
    while (this.#unsent !== undefined && this.#inputCredit > 0) {
      if (!this.#state.link.hasRoom) {
        this.#awaitRoom();
        return;
      }
      const { data, done } = this.#unsent;
      const part = data.subarray(0, Math.min(this.#inputCredit, frameBytes));
      this.#inputCredit -= part.length;
      if (part.length > 0) {
        this.#account.flushByTheWay();
        this.#state.link.send(frameType.stream, this.#state.stream, part);
      }
      this.#unsent = part.length < data.length ? { data: data.subarray(part.length), done } : undefined;
      if (this.#unsent === undefined) done();
    }
  }

  #awaitRoom(): void {
    if (this.#awaitsRoom) return;
    this.#awaitsRoom = true;
    this.#state.link.whenRoom(() => {
      this.#awaitsRoom = false;
      this.#send();
    });
  }

  #onReset(errno: number): void {
    const error = new SallyportError('tunnel_reset', 'the connection was reset', { details: { errno } });
    if (!this.#isOpen && !this.#resetSent) throw violation('a reset of what was not connected');
    this.fail(error);
  }

  /** Porter comes to the same conclusion at the same point of the conversation. */
  #settle(): void {
    const quiet = this.#inputCredit === this.#state.inputWindow && this.#account.underWay === 0;
    if (this.#endSent && this.#endReceived && quiet) this.#finish();
  }

  #finish(): void {
    if (this.#over) return;
    this.#over = true;
    const { link, stream, onOver } = this.#state;
    this.#account.end();
    link.disown(stream);
    onOver();
  }
}
