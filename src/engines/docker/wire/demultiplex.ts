/**
 * Splits the engine's multiplexed output stream: 8 bytes of header (stream, three zeros, big-endian length), then payload.
 * Payloads are handed on as they arrive, so memory does not depend on the length that a header claims.
 */

import { SallyportError } from '../../../protocol/errors.ts';

export type OutputName = 'stdout' | 'stderr';

const headerBytes = 8;

export class Demultiplexer {
  readonly #sink: (name: OutputName, payload: Buffer) => void;
  readonly #header = Buffer.alloc(headerBytes);
  #headerFilled = 0;
  #name: OutputName = 'stdout';
  #remaining = 0;

  constructor(sink: (name: OutputName, payload: Buffer) => void) {
    this.#sink = sink;
  }

  push(chunk: Buffer): void {
    let offset = 0;
    while (offset < chunk.length) {
      if (this.#remaining === 0) {
        offset += this.#takeHeader(chunk, offset);
        continue;
      }
      const payload = chunk.subarray(offset, offset + this.#remaining);
      this.#remaining -= payload.length;
      offset += payload.length;
      this.#sink(this.#name, payload);
    }
  }

  /** True between frames; an end of stream anywhere else means that output was lost. */
  get atBoundary(): boolean {
    return this.#remaining === 0 && this.#headerFilled === 0;
  }

  #takeHeader(chunk: Buffer, offset: number): number {
    const taken = chunk.copy(
      this.#header,
      this.#headerFilled,
      offset,
      offset + headerBytes - this.#headerFilled,
    );
    this.#headerFilled += taken;
    if (this.#headerFilled < headerBytes) return taken;
    this.#headerFilled = 0;
    this.#name = streamName(this.#header);
    this.#remaining = this.#header.readUInt32BE(4);
    return taken;
  }
}

function streamName(header: Buffer): OutputName {
  const padded = header[1] === 0 && header[2] === 0 && header[3] === 0;
  if (padded && header[0] === 1) return 'stdout';
  if (padded && header[0] === 2) return 'stderr';
  throw new SallyportError('engine_protocol', `not a multiplexed stream: header ${header.toString('hex')}`);
}
