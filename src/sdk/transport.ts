/** HTTP on the daemon's Unix socket, with connections that are kept. It knows no route and retries nothing. */

import { Agent, type IncomingMessage, request } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { SallyportError } from '../protocol/errors.ts';

export interface Call {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** With its query. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Buffer | AsyncIterable<Uint8Array>;
  readonly signal?: AbortSignal;
}

/** The daemon was not there at all: nothing was asked. */
export class NotThere extends Error {}

const absence: ReadonlySet<string | undefined> = new Set(['ENOENT', 'ECONNREFUSED']);

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

/**
 * A daemon that is gone has closed its connections, but this program may not have looked yet. Once it has, none of them is
 * used for a request that nobody could repeat.
 */
async function turnOfTheLoop(): Promise<void> {
  // The first one may come before anything was looked at.
  await new Promise((resolve) => setImmediate(resolve));
  await new Promise((resolve) => setImmediate(resolve));
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

function translate(error: NodeJS.ErrnoException): Error {
  if (absence.has(error.code) && error.syscall === 'connect') return new NotThere(error.message);
  if (error.syscall === 'connect') {
    return new SallyportError(
      'daemon_unreachable',
      `the daemon's socket cannot be opened: ${error.message}`,
      {
        cause: error,
      },
    );
  }
  return new SallyportError('daemon_gone', 'the connection to the daemon was lost', { cause: error });
}

export async function readAll(answer: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of answer as AsyncIterable<Buffer>) chunks.push(chunk);
  } catch (cause) {
    throw new SallyportError('daemon_gone', 'the connection to the daemon was lost', { cause });
  }
  return Buffer.concat(chunks);
}
