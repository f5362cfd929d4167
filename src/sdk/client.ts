/**
 * Calls to the daemon: starts it where it is missing, replaces one that is older, and turns its answers into values and
 * errors. What may have been done is never asked for twice.
 */

import type { IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { packageInfo } from '../lib/package-root.ts';
import { type Progress, silent } from '../lib/progress.ts';
import { clientHeader, writeClientHeader } from '../protocol/client-header.ts';
import { isSallyportError, SallyportError } from '../protocol/errors.ts';
import { type ClientEnvironment, readClientEnvironment } from './config.ts';
import { ensureDaemon, replaceDaemon, untilGone } from './connect-daemon.ts';
import { NotThere } from './lost-connection.ts';
import { type Call, readAll, Transport } from './transport.ts';
import { ClientWebSocket } from './web-socket.ts';
import { WholeAnswers, type WholeCall } from './whole-answers.ts';
import { errorFromWire, isWireError } from './wire-error.ts';

export interface ConnectionOptions {
  /** Where the daemon keeps its state and its socket. Absent: SALLYPORT_STATE_DIR, or the default. */
  readonly stateDir?: string;
  /** False: a daemon that is not there is an error, and is not started. */
  readonly startDaemon?: boolean;
  /** True: use the daemon whatever engine it has, also another one than the environment names. */
  readonly anyEngine?: boolean;
  /** Told while a daemon that is started here starts an engine: what it does, step by step. */
  readonly onProgress?: Progress;
  /** What it says its version is. Absent: that of this package. */
  readonly version?: string;
}

export type QueryValues = Readonly<
  Record<string, string | number | boolean | Uint8Array | readonly string[] | undefined>
>;

export interface CallOptions {
  readonly query?: QueryValues;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

/** How whole answers are had: by the daemon's socket, or within its own process without one. */
export type Answers = Pick<WholeAnswers, 'ask' | 'close'>;

/** A daemon that ends under a call takes two of them: the call that is cut off, and the one that finds nobody. */
const mostAttempts = 8;

export class DaemonClient {
  readonly #environment: ClientEnvironment;
  #mayStart: boolean;
  readonly #socketPath: string;
  readonly #transport: Transport;
  readonly #answers: Answers;
  readonly #words: string;
  readonly #progress: Progress;
  #starting: Promise<void> | undefined;

  constructor(options: ConnectionOptions = {}, answers?: Answers) {
    const read = readClientEnvironment();
    const stateDir = options.stateDir ?? read.stateDir;
    this.#environment = {
      ...read,
      stateDir,
      childVariables: { ...read.childVariables, SALLYPORT_STATE_DIR: stateDir },
    };
    this.#mayStart = options.startDaemon ?? true;
    this.#socketPath = join(stateDir, 'daemon.sock');
    this.#transport = new Transport(this.#socketPath);
    this.#answers = answers ?? new WholeAnswers(this.#socketPath);
    this.#progress = options.onProgress ?? silent;
    const { engineEnvironment } = read;
    const version = options.version ?? packageInfo().version;
    this.#words = writeClientHeader(
      options.anyEngine === true ? { version } : { version, engineEnvironment },
    );
  }

  /** `onHead`: what the head of the answer says, which may come long before the rest. */
  async json<T>(
    method: Call['method'],
    path: string,
    options: CallOptions & Pick<WholeCall, 'onHead'> = {},
  ): Promise<T> {
    const { onHead } = options;
    const call = { ...callOf(method, path, options), ...(onHead === undefined ? {} : { onHead }) };
    const { body } = await this.#attempt(call, mostAttempts, async (told) => {
      const answer = await this.#answers.ask(told);
      if (!isSuccess(answer.status)) throw refusal(answer.status, answer.body);
      return answer;
    });
    return (body.length === 0 ? undefined : JSON.parse(body.toString('utf8'))) as T;
  }

  /** The answer as it comes, if it is a success. */
  async open(method: Call['method'], path: string, options: CallOptions = {}): Promise<IncomingMessage> {
    return await this.#attempt(callOf(method, path, options), mostAttempts, this.#stream);
  }

  /** With a body that can be sent only once: so that a daemon is there is seen to before. */
  async upload<T>(
    path: string,
    content: Buffer | AsyncIterable<Uint8Array>,
    options: CallOptions & { readonly contentType: string },
  ): Promise<T> {
    const { query, signal, contentType } = options;
    await this.json('GET', '/v1/health', signal === undefined ? {} : { signal });
    const answer = await this.#attempt(
      {
        method: 'PUT',
        path: withQuery(path, query),
        headers: { 'content-type': contentType },
        body: content,
        ...(signal === undefined ? {} : { signal }),
      },
      1,
      this.#stream,
    );
    return JSON.parse((await readAll(answer)).toString('utf8')) as T;
  }

  /** A WebSocket that is not open yet. */
  socket(path: string, query: QueryValues): ClientWebSocket {
    return new ClientWebSocket({
      socketPath: this.#socketPath,
      path: withQuery(path, query),
      headers: { [clientHeader]: this.#words },
      mostMessageBytes: 16 * 2 ** 20,
    });
  }

  /** Stops the daemon; resolves when it takes no calls any more. One that does not run is no error. */
  async shutdown(options: { readonly keep?: boolean } = {}): Promise<void> {
    const body = Buffer.from(JSON.stringify({ keep: options.keep ?? false }));
    try {
      const headers = { 'content-type': 'application/json' };
      await this.#checked(
        await this.#transport.send({ method: 'POST', path: '/v1/shutdown', headers, body }),
      );
    } catch (error) {
      if (!(error instanceof NotThere) && !isSallyportError(error, 'daemon_gone')) throw error;
    }
    await untilGone(this.#transport);
  }

  /** Sees to it that a daemon answers; `args` are for one that has to be started. */
  async ensure(signal?: AbortSignal, args: readonly string[] = []): Promise<void> {
    await this.#start(signal, args);
  }

  /** Lets go of its connections. What is still on its way may end, and starts no daemon any more. */
  close(): void {
    this.#mayStart = false;
    this.#answers.close();
    this.#transport.close();
  }

  readonly #stream = async (call: Call): Promise<IncomingMessage> =>
    await this.#checked(await this.#transport.send(call));

  async #attempt<C extends Call, A>(call: C, attempts: number, send: (call: C) => Promise<A>): Promise<A> {
    const told = { ...call, headers: { ...call.headers, [clientHeader]: this.#words } };
    for (let left = attempts; ; left--) {
      try {
        return await send(told);
      } catch (error) {
        await this.#recover(call, error, left - 1);
      }
    }
  }

  /** Makes another attempt sensible, or throws. */
  async #recover(call: Call, error: unknown, left: number): Promise<void> {
    const { signal, method } = call;
    if (error instanceof NotThere) {
      if (left === 0 || !this.#mayStart) throw this.#unreachable(error);
      await this.#start(signal);
    } else if (left === 0) {
      throw error;
    } else if (isSallyportError(error, 'daemon_outdated')) {
      if (!this.#mayStart) throw error;
      await replaceDaemon(this.#transport, this.#environment, signal, this.#progress);
    } else if (isSallyportError(error, 'daemon_stopping')) {
      if (!this.#mayStart) throw error;
      await untilGone(this.#transport, signal);
    } else if (!(isSallyportError(error, 'daemon_gone') && method === 'GET')) {
      throw error;
    }
  }

  #unreachable(cause: Error): SallyportError {
    return new SallyportError('daemon_unreachable', `no daemon answers at ${this.#socketPath}`, {
      details: { socket: this.#socketPath },
      cause,
    });
  }

  async #start(signal: AbortSignal | undefined, args: readonly string[] = []): Promise<void> {
    this.#starting ??= ensureDaemon(this.#transport, this.#environment, signal, args, this.#progress).finally(
      () => {
        this.#starting = undefined;
      },
    );
    await this.#starting;
  }

  async #checked(answer: IncomingMessage): Promise<IncomingMessage> {
    const status = answer.statusCode ?? 0;
    if (isSuccess(status)) return answer;
    throw refusal(status, await readAll(answer));
  }
}

function callOf(method: Call['method'], path: string, options: CallOptions) {
  const { body, headers, query, signal } = options;
  const json = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
  return {
    method,
    path: withQuery(path, query),
    headers: { ...headers, ...(json === undefined ? {} : { 'content-type': 'application/json' }) },
    ...(json === undefined ? {} : { body: json }),
    ...(signal === undefined ? {} : { signal }),
  };
}

const isSuccess = (status: number): boolean => status >= 200 && status < 300;

function refusal(status: number, body: Buffer): SallyportError {
  const value = parse(body.toString('utf8'));
  if (isWireError(value)) return errorFromWire(value.error);
  return new SallyportError('internal', `the daemon answered with status ${status}`, { details: { status } });
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

export const segment = (text: string): string => encodeURIComponent(text);

function withQuery(path: string, query: QueryValues = {}): string {
  const parts = Object.entries(query).flatMap(([name, value]) => {
    if (value === undefined) return [];
    const values = Array.isArray(value) ? (value as readonly string[]) : [value as string | Uint8Array];
    return values.map((one) => `${name}=${encode(one)}`);
  });
  return parts.length === 0 ? path : `${path}?${parts.join('&')}`;
}

const plain = /^[A-Za-z0-9\-._~/]$/;

/** Bytes, not characters: the name of a file need not be UTF-8. */
function encode(value: string | number | boolean | Uint8Array): string {
  const bytes = value instanceof Uint8Array ? value : Buffer.from(String(value));
  return Array.from(bytes, (byte) => {
    const character = String.fromCharCode(byte);
    return plain.test(character) ? character : `%${byte.toString(16).padStart(2, '0')}`;
  }).join('');
}
