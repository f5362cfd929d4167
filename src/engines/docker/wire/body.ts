/**
 * The body of an answer, pulled by its reader: whoever reads slowly slows the engine down, not this process's memory.
 * It ends whole or fails with one of our errors; an engine that dies half-way never looks like a short answer.
 */

import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';

export class EngineBody extends Readable {
  readonly headers: IncomingHttpHeaders;
  readonly #response: IncomingMessage;

  constructor(response: IncomingMessage, explain: (error: Error) => Error) {
    super();
    this.headers = response.headers;
    this.#response = response;
    // A failure before anybody listens must not end the process; it is kept, and met by whoever reads.
    this.on('error', () => {});
    response.on('data', (chunk: Buffer) => {
      if (!this.push(chunk)) response.pause();
    });
    response.on('end', () => this.push(null));
    response.on('error', (error) => this.destroy(explain(error)));
    response.on('close', () => {
      if (!response.complete) this.destroy(explain(new Error('the answer broke off')));
    });
  }

  override _read(): void {
    this.#response.resume();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#response.destroy();
    done(error);
  }
}
