/**
 * A call of the API from within the daemon: what stands for its request, its answer and its connection. It goes through the same
 * routes and checks as one that comes in by a socket, and its caller going away means the same.
 */

import { Readable } from 'node:stream';
import { deferred } from '../lib/deferred.ts';
import { SallyportError } from '../protocol/errors.ts';
import type { Reply } from './route.ts';
import type { Asked } from './router.ts';

export interface InnerCall {
  readonly method: string;
  /** With its query. */
  readonly path: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Buffer;
  readonly signal?: AbortSignal;
  readonly onHead?: (headers: ReadonlyMap<string, string>) => void;
}

export interface InnerAnswer {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: Buffer;
  readonly isLast: boolean;
}

/** One that is under way. It is over when its caller has its answer, or does not want it any more. */
export class InnerWatch {
  readonly #controller = new AbortController();
  readonly #over = deferred<void>();
  readonly #atTheEnd: (() => void)[] = [];
  readonly #caller: AbortSignal | undefined;
  endless = false;
  #ended = false;

  constructor(caller: AbortSignal | undefined) {
    this.#caller = caller;
    if (caller?.aborted === true) this.#leave();
    else caller?.addEventListener('abort', this.#leave, { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get over(): Promise<void> {
    return this.#over.promise;
  }

  readonly abort = (reason: Error): void => this.#controller.abort(reason);

  whenOver(done: () => void): void {
    if (this.#ended) done();
    else this.#atTheEnd.push(done);
  }

  /** Whoever is gone does not wait for what is still done for him. */
  async unlessAborted<T>(work: Promise<T>): Promise<T> {
    const { signal } = this;
    let give: (() => void) | undefined;
    const gone = new Promise<never>((_, reject) => {
      give = () => reject(signal.reason as Error);
      if (signal.aborted) give();
      else signal.addEventListener('abort', give, { once: true });
    });
    try {
      return await Promise.race([work, gone]);
    } finally {
      if (give !== undefined) signal.removeEventListener('abort', give);
    }
  }

  end(): void {
    this.#ended = true;
    this.#caller?.removeEventListener('abort', this.#leave);
    for (const done of this.#atTheEnd.splice(0)) done();
    this.#over.resolve();
  }

  readonly #leave = (): void => this.#controller.abort(this.#caller?.reason);
}

export function innerRequest({ headers, body }: InnerCall): Asked {
  const bytes = Readable.from(body === undefined ? [] : [body], { objectMode: false });
  return Object.assign(bytes, { headers });
}

export async function wholeReply(reply: Reply, onHead: InnerCall['onHead']): Promise<InnerAnswer> {
  switch (reply.type) {
    case 'json':
      return innerAnswer(reply.status, reply.body, reply.headers);
    case 'late-json':
      onHead?.(new Map(Object.entries(reply.headers)));
      return innerAnswer(200, await reply.body, reply.headers);
    case 'empty':
      return { status: 204, headers: new Map(), body: Buffer.alloc(0), isLast: false };
    case 'text':
    case 'bytes':
    case 'events':
      throw new SallyportError('internal', `an answer of ${reply.type} is no JSON`);
  }
}

export function innerAnswer(
  status: number,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): InnerAnswer {
  const bytes = Buffer.from(JSON.stringify(body), 'utf8');
  return { status, headers: new Map(Object.entries(headers)), body: bytes, isLast: false };
}
