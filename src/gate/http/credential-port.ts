/** What the HTTP layer asks of a sandbox's credentials. `gate/credentials.ts` has the class that does it. */

import type { Destination } from '../contract.ts';
import type { RequestBudget } from '../request-budget.ts';
import type { Framing } from './framing.ts';
import type { ResponseHead } from './head.ts';
import type { Headers } from './headers.ts';
import type { MessageRoom } from './message-room.ts';
import type { Pauses } from './pauses.ts';

export interface MaskedBody {
  readonly headers: Headers;
  readonly framing: Framing;
  /** Absent: there is no body. */
  readonly pieces: ((body: AsyncIterable<Buffer>, pauses: Pauses) => AsyncIterable<Buffer>) | undefined;
}

/** Masks whatever a server answers that may know a secret. */
export interface AnswerMask {
  /** Reason, names and values of headers; of interim answers, too. */
  head(head: ResponseHead): ResponseHead;
  /** Throws for an answer that cannot be searched. `head` is masked already. */
  body(head: ResponseHead, headers: Headers, framing: Framing): MaskedBody;
  /** What the server sends after its 101. Throws where it would be sent in a form that cannot be searched. */
  webSocket(head: ResponseHead, bytes: AsyncIterable<Buffer>, room: MessageRoom): AsyncIterable<Buffer>;
}

interface CheckOptions {
  readonly budget?: RequestBudget | undefined;
  /** Nobody wants the body any more. */
  readonly signal?: AbortSignal | undefined;
}

export interface PreparedRequest {
  /** With the real value where the phantom was. */
  readonly headers: Headers;
  /** Passes the body on and throws before a phantom would leave. */
  checkBody(body: AsyncIterable<Buffer>, options?: CheckOptions): AsyncIterable<Buffer>;
  /** Absent: no secret is bound to this server. */
  readonly mask: AnswerMask | undefined;
}

export interface RequestCredentials {
  /** Some secret is or was bound to this host, on whichever port. */
  applies(destination: Destination): boolean;
  /** Some secret is bound to a path there. */
  goesByPath(destination: Destination): boolean;
  prepare(request: {
    readonly method: string;
    readonly path: string;
    readonly scheme: 'http' | 'https';
    readonly destination: Destination;
    readonly headers: Headers;
  }): Promise<PreparedRequest>;
}
