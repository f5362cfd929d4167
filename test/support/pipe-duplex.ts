/**
 * A child's stdout and stdin as one stream. Node's own `Duplex.from` tears down both when one of them closes, and then
 * what the child had said last is lost; here the end of stdout, after its last byte, is the end.
 */

import { Duplex, type Readable, type Writable } from 'node:stream';

export class PipeDuplex extends Duplex {
  readonly #in: Writable;
  readonly #out: Readable;

  constructor(readable: Readable, writable: Writable) {
    super({ allowHalfOpen: false });
    this.#out = readable;
    this.#in = writable;
    writable.on('error', () => {
      // The child is gone; the end of its output says so.
    });
    this.on('error', () => {});
    readable.on('data', (chunk: Buffer) => {
      if (!this.push(chunk)) readable.pause();
    });
    readable.on('end', () => this.push(null));
    readable.on('error', (error) => this.destroy(error));
  }

  override _read(): void {
    this.#out.resume();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    if (this.#in.destroyed) done();
    else this.#in.write(chunk, () => done());
  }

  override _final(done: () => void): void {
    if (this.#in.destroyed) done();
    else this.#in.end(() => done());
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#in.destroy();
    this.#out.destroy();
    done(error);
  }
}
