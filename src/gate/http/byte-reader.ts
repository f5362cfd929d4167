/**
 * Reads a stream in the portions that a protocol has: up to a mark, so many bytes, whatever is there. It takes from the stream
 * only when asked, so a slow consumer slows the sender. What was read too far is given back with `release`.
 */

import type { Duplex } from 'node:stream';

export class StreamEnded extends Error {
  override readonly name = 'StreamEnded';
}

const readAheadBytes = 16 * 1024;
const mostPieceBytes = 64 * 1024;

export class ByteReader {
  readonly #stream: Duplex;
  #buffered: Buffer = Buffer.alloc(0);
  #ended = false;
  #failure: Error | undefined;
  #wake: (() => void) | undefined;

  constructor(stream: Duplex) {
    this.#stream = stream;
    stream.on('readable', this.#onReadable);
    stream.on('end', this.#onEnd);
    stream.on('close', this.#onEnd);
    stream.on('error', this.#onError);
  }

  /** Up to the end of `mark`, with it; undefined when the stream ends before the first byte. */
  async until(
    mark: string,
    mostBytes: number,
    tooLong: () => Error,
    /** Sees what is there while the mark is not, and throws if it can come to nothing. */
    look: (bytes: Buffer) => void = () => {},
  ): Promise<Buffer | undefined> {
    let from = 0;
    for (;;) {
      const at = this.#buffered.indexOf(mark, from, 'latin1');
      const end = at + mark.length;
      if (at >= 0 && end <= mostBytes) return this.#cut(end);
      if (at >= 0 || this.#buffered.length >= mostBytes) throw tooLong();
      look(this.#buffered);
      from = Math.max(0, this.#buffered.length - mark.length + 1);
      if (!(await this.#fill())) {
        if (this.#buffered.length === 0) return undefined;
        throw new StreamEnded('the stream ended within a message');
      }
    }
  }

  /** At least one byte and at most so many; undefined at the end. */
  async some(mostBytes: number): Promise<Buffer | undefined> {
    if (this.#buffered.length === 0 && !(await this.#fill())) return undefined;
    return this.#cut(Math.min(mostBytes, this.#buffered.length));
  }

  /** Whatever comes, to the end. */
  async *pieces(): AsyncGenerator<Buffer> {
    for (;;) {
      const piece = await this.some(mostPieceBytes);
      if (piece === undefined) return;
      yield piece;
    }
  }

  /** Resolves with true when there is a byte, false at the end. */
  async ready(): Promise<boolean> {
    return this.#buffered.length > 0 || (await this.#fill());
  }

  get bufferedBytes(): number {
    return this.#buffered.length;
  }

  /** Lets go of the stream. What was read and not used comes back as its first bytes. */
  release(): Buffer {
    this.#stream.off('readable', this.#onReadable);
    this.#stream.off('end', this.#onEnd);
    this.#stream.off('close', this.#onEnd);
    this.#stream.off('error', this.#onError);
    const rest = this.#buffered;
    this.#buffered = Buffer.alloc(0);
    return rest;
  }

  #cut(end: number): Buffer {
    const out = this.#buffered.subarray(0, end);
    this.#buffered = this.#buffered.subarray(end);
    return out;
  }

  #add(chunk: Buffer): void {
    this.#buffered = this.#buffered.length === 0 ? chunk : Buffer.concat([this.#buffered, chunk]);
  }

  async #fill(): Promise<boolean> {
    const before = this.#buffered.length;
    for (;;) {
      const chunk = this.#stream.read() as Buffer | null;
      if (chunk !== null) this.#add(chunk);
      // Also what was read ahead between the waking and this: with it the stream may have come to its end.
      if (this.#buffered.length > before) return true;
      if (this.#failure !== undefined) throw this.#failure;
      if (this.#ended || this.#stream.destroyed || this.#stream.readableEnded) return false;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  /** A little is read ahead, because the end of a stream shows only when somebody reads. */
  readonly #onReadable = (): void => {
    if (this.#wake === undefined && this.#buffered.length < readAheadBytes) {
      const chunk = this.#stream.read() as Buffer | null;
      if (chunk !== null) this.#add(chunk);
    }
    this.#stir();
  };

  readonly #onEnd = (): void => {
    this.#ended = true;
    this.#stir();
  };

  readonly #onError = (error: Error): void => {
    this.#failure = error;
    this.#stir();
  };

  #stir(): void {
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
  }
}
