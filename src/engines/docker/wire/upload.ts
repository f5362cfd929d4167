/** A request body that somebody else produces: tells a slow engine from a slow producer, and whose failure it was. */

import type { ClientRequest } from 'node:http';
import { finished, type Readable } from 'node:stream';
import { SallyportError } from '../../../protocol/errors.ts';

export class Upload {
  readonly #source: Readable;
  #moved = false;
  #failure: Error | undefined;

  constructor(source: Readable) {
    this.#source = source;
  }

  /** The producer's own failure, which must not be reported as one of the engine. */
  get failure(): Error | undefined {
    return this.#failure;
  }

  /** True while the body still moves, or while its producer (not the engine) is the one that is slow. */
  readonly advances = (): boolean => {
    const goOn = this.#moved || (!this.#source.readableEnded && this.#source.readableFlowing === true);
    this.#moved = false;
    return goOn;
  };

  /** From here on the source belongs to the request: whatever ends the request, ends the source too. */
  feed(request: ClientRequest): void {
    const source = this.#source;
    finished(source, { writable: false }, (error) => {
      if (error === undefined || error === null || request.destroyed) return;
      this.#failure =
        source.errored ?? new SallyportError('cancelled', 'the upload was closed before its end');
      // Not ended but destroyed: the engine must see a body that broke off, not a shorter one that looks whole.
      request.destroy(this.#failure);
    });
    request.once('close', () => this.release());
    const moved = (): void => {
      this.#moved = true;
    };
    source.on('data', moved);
    // With the whole body the engine gets the whole time to answer.
    source.on('end', moved);
    source.pipe(request);
  }

  /** Ends the producer; harmless when it is done already. */
  release(): void {
    this.#source.unpipe();
    this.#source.destroy();
  }
}
