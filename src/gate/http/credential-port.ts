/** What the HTTP layer asks of a sandbox's credentials. `gate/credentials.ts` has the class that does it. */

import type { Destination } from '../contract.ts';
import type { Framing } from './framing.ts';
import type { Headers } from './headers.ts';

export interface CleanedAnswer {
  readonly headers: Headers;
  readonly framing: Framing;
  /** Absent: the body passes as it is. */
  readonly pieces: ((body: AsyncIterable<Buffer>) => AsyncIterable<Buffer>) | undefined;
}

export interface PreparedRequest {
  /** With the real value where the phantom was. */
  readonly headers: Headers;
  /** Passes the body on and throws before a phantom would leave. */
  checkBody(body: AsyncIterable<Buffer>): AsyncIterable<Buffer>;
  cleanAnswer(headers: Headers, framing: Framing, method: string): CleanedAnswer;
}

export interface RequestCredentials {
  /** Some secret is bound to this host and port. */
  applies(destination: Destination): boolean;
  prepare(request: {
    readonly method: string;
    readonly path: string;
    readonly scheme: 'http' | 'https';
    readonly destination: Destination;
    readonly headers: Headers;
  }): Promise<PreparedRequest>;
}
