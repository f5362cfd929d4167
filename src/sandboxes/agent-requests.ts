/**
 * What a sandbox may ask of the user's SSH agent: which keys it has, and signatures by them.
 *
 * SECURITY: an agent also takes orders: forget keys, lock itself, load a library as a smart card (CVE-2023-38408). Those never
 * reach it. Each is replaced by a request that no agent knows, so that the refusal comes from the agent itself and in the
 * order in which it was asked.
 */

import { Transform, type TransformCallback } from 'node:stream';

const allowed: ReadonlySet<number> = new Set([
  11, // SSH_AGENTC_REQUEST_IDENTITIES
  13, // SSH_AGENTC_SIGN_REQUEST
]);
/** One byte long, of type 0, which is reserved: every agent answers with a failure. */
const unknownRequest = Buffer.from([0, 0, 0, 1, 0]);
const headerBytes = 5;
const mostRequestBytes = 256 * 1024;

export class AgentRequests extends Transform {
  #header = Buffer.alloc(0);
  /** Of the request that is on its way. */
  #left = 0;
  #passes = false;

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    try {
      this.#take(chunk);
      done();
    } catch (error) {
      done(error as Error);
    }
  }

  #take(chunk: Buffer): void {
    let rest = chunk;
    while (rest.length > 0) {
      if (this.#left > 0) {
        const part = rest.subarray(0, this.#left);
        if (this.#passes) this.push(part);
        this.#left -= part.length;
        rest = rest.subarray(part.length);
        continue;
      }
      const missing = headerBytes - this.#header.length;
      this.#header = Buffer.concat([this.#header, rest.subarray(0, missing)]);
      rest = rest.subarray(missing);
      if (this.#header.length === headerBytes) this.#begin();
    }
  }

  #begin(): void {
    const length = this.#header.readUInt32BE(0);
    if (length === 0 || length > mostRequestBytes)
      throw new RangeError('a request of no size that an agent takes');
    this.#passes = allowed.has(this.#header.readUInt8(4));
    this.push(this.#passes ? this.#header : unknownRequest);
    this.#left = length - 1;
    this.#header = Buffer.alloc(0);
  }
}
