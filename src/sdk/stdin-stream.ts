/**
 * The input of a command as a writable stream. It keeps what the sandbox has not said to have taken, so that a new
 * connection can send it again; a writer is held up when that is too much.
 */

import { Writable } from 'node:stream';

const mostUntakenBytes = 256 * 1024;
const stepBytes = 64 * 1024;

export interface InputLine {
  send(data: Buffer): void;
  end(): void;
}

export class StdinStream extends Writable {
  /** Sent or not, but not yet taken; the first byte has the offset `#taken`. */
  #kept: Buffer[] = [];
  #keptBytes = 0;
  #taken = 0;
  #ended = false;
  #line: InputLine | undefined;
  #blocked: (() => void) | undefined;

  constructor() {
    super({ highWaterMark: stepBytes });
    // A program may end before it has read everything: that is no reason to end this one.
    this.on('error', () => {});
  }

  /** A connection on which the sandbox says how much it has. What it lacks is sent. */
  connect(line: InputLine, taken: number): void {
    // Without a line until all is sent: the acknowledgement may let the writer end, and the end comes after the bytes.
    this.#line = undefined;
    this.acknowledge(taken);
    for (const chunk of this.#kept) line.send(chunk);
    if (this.#ended) line.end();
    this.#line = line;
  }

  /** At the first connection of a command that had another writer before. */
  beginAt(taken: number): void {
    if (this.#keptBytes === 0) this.#taken = taken;
  }

  disconnect(): void {
    this.#line = undefined;
  }

  /** `total` counts from the beginning of the input. */
  acknowledge(total: number): void {
    let left = total - this.#taken;
    if (left <= 0) return;
    this.#taken = total;
    while (left > 0) {
      const [first] = this.#kept;
      if (first === undefined) break;
      const part = Math.min(left, first.length);
      left -= part;
      this.#keptBytes -= part;
      if (part === first.length) this.#kept.shift();
      else this.#kept[0] = first.subarray(part);
    }
    this.#unblock();
  }

  /** Nobody reads it any more. */
  close(): void {
    this.#line = undefined;
    this.#kept = [];
    this.#keptBytes = 0;
    this.#unblock();
    this.destroy();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    // Copied: the caller may use its buffer again, and this is kept for longer than the call.
    const data = Buffer.from(chunk);
    for (let at = 0; at < data.length; at += stepBytes) {
      const part = data.subarray(at, at + stepBytes);
      this.#kept.push(part);
      this.#keptBytes += part.length;
      this.#line?.send(part);
    }
    if (this.#keptBytes <= mostUntakenBytes) done();
    else this.#blocked = done;
  }

  override _final(done: () => void): void {
    this.#ended = true;
    this.#line?.end();
    done();
  }

  #unblock(): void {
    if (this.#keptBytes > mostUntakenBytes) return;
    const done = this.#blocked;
    this.#blocked = undefined;
    done?.();
  }
}
