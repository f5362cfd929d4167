/**
 * One end of a connection whose other end is in another thread. Both directions have back-pressure: what was sent counts until the other end
 * has passed it on. Ending is a half-close; destroying is the end of both, after what was sent before.
 */

import { Duplex } from 'node:stream';

export type StreamMessage =
  | { readonly data: Uint8Array<ArrayBuffer> }
  | { readonly taken: number }
  | { readonly end: true }
  | { readonly closed: true };

const windowBytes = 256 * 1024;
const promptBytes = 32 * 1024;
/** What a message counts for at least: many tiny ones would fill the memory of whoever lets them wait. */
const leastCost = 1024;
const costOf = (bytes: number): number => Math.max(bytes, leastCost);

export class ThreadStream extends Duplex {
  readonly #send: (message: StreamMessage) => void;
  readonly #pace: (next: () => void) => void;
  #underWay = 0;
  #waiting: (() => void) | undefined;
  #unacknowledged = 0;
  #endReceived = false;
  #closeReceived = false;

  /** `pace`: calls back when more may be sent. */
  constructor(send: (message: StreamMessage) => void, pace: (next: () => void) => void = (next) => next()) {
    super({ allowHalfOpen: true, readableHighWaterMark: promptBytes, writableHighWaterMark: promptBytes });
    this.#send = send;
    this.#pace = pace;
    this.on('error', () => {});
  }

  receive(message: StreamMessage): void {
    if (this.destroyed) return;
    if ('data' in message) {
      const { buffer, byteOffset, byteLength } = message.data;
      this.#unacknowledged += costOf(byteLength);
      // Acknowledged by `_read`, when there is room for more.
      this.push(Buffer.from(buffer, byteOffset, byteLength));
    } else if ('taken' in message) {
      this.#underWay -= message.taken;
      this.#continue();
    } else if ('end' in message) {
      this.#endReceived = true;
      this.push(null);
    } else this.#onClosed();
  }

  /** The other end is not there any more, and said nothing. */
  lose(): void {
    this.#closeReceived = true;
    this.destroy();
  }

  override _read(): void {
    if (this.#unacknowledged === 0) return;
    this.#send({ taken: this.#unacknowledged });
    this.#unacknowledged = 0;
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    // A copy: what arrives is a view into a buffer that others use.
    const data = new Uint8Array(chunk);
    this.#underWay += costOf(data.byteLength);
    this.#send({ data });
    this.#pace(() => {
      if (this.#underWay < windowBytes) done();
      else this.#waiting = done;
    });
  }

  override _final(done: () => void): void {
    this.#send({ end: true });
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    if (!this.#closeReceived) this.#send({ closed: true });
    this.#waiting = undefined;
    done(error);
  }

  #continue(): void {
    const done = this.#waiting;
    if (done === undefined || this.#underWay >= windowBytes) return;
    this.#waiting = undefined;
    done();
  }

  /** What came before it is still read. */
  #onClosed(): void {
    this.#closeReceived = true;
    if (this.#endReceived && !this.readableEnded) this.once('end', () => this.destroy());
    else this.destroy();
  }
}

/** Joins a connection of porter's with its end in the other thread: the end of either is passed on, after all that came before. */
export function joinThread(tunnel: Duplex, stream: ThreadStream): void {
  tunnel.on('error', () => {});
  tunnel.once('close', () => stream.destroy());
  stream.once('close', () => {
    if (stream.readableEnded && !tunnel.writableFinished) tunnel.once('finish', () => tunnel.destroy());
    else tunnel.destroy();
  });
  if (tunnel.destroyed) stream.destroy();
  tunnel.pipe(stream);
  stream.pipe(tunnel);
}
