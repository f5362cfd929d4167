/** HTTP on the daemon's Unix socket, with connections that are kept. It knows no route and retries nothing. */

import { Agent, type IncomingMessage, request } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { connectionLost, notReached } from './lost-connection.ts';
import { turnOfTheLoop } from './turn-of-the-loop.ts';

export interface Call {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** With its query. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Buffer | AsyncIterable<Uint8Array>;
  readonly signal?: AbortSignal;
}

/** Else Node finds out by a large pattern whether the host's name is an address, for a TLS that is not there. */
export const noServerName: object = { servername: '' };

export class Transport {
  readonly #socketPath: string;
  readonly #agent = new Agent({ keepAlive: true, maxFreeSockets: 16 });

  constructor(socketPath: string) {
    this.#socketPath = socketPath;
  }

  /** Resolves with the head of the answer, whatever its status. */
  async send(call: Call): Promise<IncomingMessage> {
    const { method, path, headers = {}, body, signal } = call;
    signal?.throwIfAborted();
    if (method !== 'GET') await turnOfTheLoop();
    const outgoing = request({
      socketPath: this.#socketPath,
      ...noServerName,
      agent: this.#agent,
      method,
      path,
      headers: {
        host: 'localhost',
        ...headers,
        ...(Buffer.isBuffer(body) ? { 'content-length': body.length } : {}),
      },
    });
    const answered = new Promise<IncomingMessage>((resolve, reject) => {
      outgoing.once('response', resolve);
      outgoing.once('error', (error: NodeJS.ErrnoException) => reject(translate(error)));
    });
    const onAbort = (): void => void outgoing.destroy(new Error('aborted'));
    signal?.addEventListener('abort', onAbort, { once: true });
    outgoing.once('close', () => signal?.removeEventListener('abort', onAbort));
    const sent = sendBody(outgoing, body);
    try {
      // An answer may come before the body is sent: a refusal. Then the rest of it is of no interest.
      return await Promise.race([answered, sent.then(() => answered)]);
    } catch (error) {
      outgoing.destroy();
      signal?.throwIfAborted();
      throw error;
    }
  }

  /** Lets go of the connections that are kept. */
  close(): void {
    this.#agent.destroy();
  }
}

async function sendBody(outgoing: ReturnType<typeof request>, body: Call['body']): Promise<void> {
  if (body === undefined || Buffer.isBuffer(body)) {
    outgoing.end(body);
    return;
  }
  let ownFailure: unknown;
  const watched = async function* (): AsyncGenerator<Uint8Array> {
    try {
      yield* body;
    } catch (error) {
      ownFailure = error;
      throw error;
    }
  };
  try {
    await pipeline(Readable.from(watched(), { objectMode: false }), outgoing);
  } catch (error) {
    if (ownFailure !== undefined) throw ownFailure;
    // The connection says itself why it ended.
    if (!outgoing.destroyed) throw error;
  }
}

const translate = (error: NodeJS.ErrnoException): Error =>
  error.syscall === 'connect' ? notReached(error) : connectionLost(error);

export async function readAll(answer: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of answer as AsyncIterable<Buffer>) chunks.push(chunk);
  } catch (cause) {
    throw connectionLost(cause);
  }
  return Buffer.concat(chunks);
}
