/**
 * A negotiated connection to one engine: sends a call, enforces its deadline, turns failures into our errors.
 *
 * Three shapes of call: `json` (whole answer), `stream` (body pulled by the reader, so back-pressure reaches the engine)
 * and `hijack` (the connection becomes a raw two-way stream). Every call has a deadline; `signal` ends any of them.
 */

import type { ClientRequest, IncomingMessage, RequestOptions } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex, Readable } from 'node:stream';
import { deadline } from '../../../lib/deadline.ts';
import { type ErrorCode, SallyportError } from '../../../protocol/errors.ts';
import { EngineBody } from './body.ts';
import { connectionError, readErrorMessage, statusError } from './errors.ts';
import type { Transport } from './transport.ts';
import { Upload } from './upload.ts';

export interface CallOptions {
  readonly signal?: AbortSignal;
  /** How long the engine may take to answer; for streams, to begin to. */
  readonly timeoutMs?: number;
}

export interface EngineCall extends CallOptions {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'DELETE';
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  /** A raw request body, destroyed when the call fails. The deadline runs only while the engine takes nothing of it. */
  readonly upload?: Readable;
  /** What a 404 means for this call. */
  readonly notFound?: ErrorCode;
}

export const defaultTimeoutMs = 30_000;
const maxJsonBytes = 64 * 2 ** 20;
const keepAliveMs = 30_000;

export class EngineConnection {
  readonly endpoint: string;
  readonly apiVersion: string | undefined;
  readonly #transport: Transport;

  constructor(transport: Transport, endpoint: string, apiVersion?: string) {
    this.#transport = transport;
    this.endpoint = endpoint;
    this.apiVersion = apiVersion;
  }

  /** `read` picks what is wanted out of the answer; an answer in which it is missing is not the Engine API's. */
  async json<T, R = T>(call: EngineCall, read: (body: T) => R = (body) => body as unknown as R): Promise<R> {
    const upload = call.upload === undefined ? undefined : new Upload(call.upload);
    const limit = deadline(call.timeoutMs ?? defaultTimeoutMs, call.signal, upload?.advances);
    try {
      const response = await this.#respond(call, upload, limit.signal);
      const text = await this.#readText(call, response);
      return this.#interpret(call, text, read);
    } catch (error) {
      throw this.#explain(error, call, limit.expired(), upload);
    } finally {
      limit.dispose();
    }
  }

  /** The answer with its body unread. */
  async stream(call: EngineCall): Promise<EngineBody> {
    const upload = call.upload === undefined ? undefined : new Upload(call.upload);
    const limit = deadline(call.timeoutMs ?? defaultTimeoutMs, call.signal, upload?.advances);
    try {
      const response = await this.#respond(call, upload, limit.signal);
      // Events may be silent for hours as well.
      if (response.socket instanceof Socket) response.socket.setKeepAlive(true, keepAliveMs);
      const body = new EngineBody(response, (error) => this.#explain(error, call, false, upload));
      destroyOnAbort(body, call.signal);
      return body;
    } catch (error) {
      throw this.#explain(error, call, limit.expired(), upload);
    } finally {
      limit.dispose();
    }
  }

  async hijack(call: EngineCall): Promise<Duplex> {
    const limit = deadline(call.timeoutMs ?? defaultTimeoutMs, call.signal);
    try {
      const socket = await this.#upgrade(call, limit.signal);
      // A remote machine that vanishes sends no goodbye, and an attached stream may rightly be silent for hours.
      if (socket instanceof Socket) socket.setKeepAlive(true, keepAliveMs);
      // An abort signal has no effect on a request once its connection was upgraded.
      destroyOnAbort(socket, call.signal);
      return socket;
    } catch (error) {
      throw this.#explain(error, call, limit.expired());
    } finally {
      limit.dispose();
    }
  }

  #open(call: EngineCall, signal: AbortSignal, headers: Record<string, string>): ClientRequest {
    const prefix = this.apiVersion === undefined ? '' : `/v${this.apiVersion}`;
    const options: RequestOptions = {
      method: call.method,
      path: `${prefix}${call.path}${queryString(call.query)}`,
      headers: { ...headers, ...call.headers },
      signal,
    };
    return this.#transport(options);
  }

  async #respond(
    call: EngineCall,
    upload: Upload | undefined,
    signal: AbortSignal,
  ): Promise<IncomingMessage> {
    let request: ClientRequest | undefined;
    try {
      const payload = call.body === undefined ? undefined : JSON.stringify(call.body);
      const headers: Record<string, string> = {};
      if (payload !== undefined) {
        Object.assign(headers, jsonHeaders(payload));
      } else if (upload !== undefined) {
        headers['Transfer-Encoding'] = 'chunked';
      }
      const opened = this.#open(call, signal, headers);
      request = opened;
      const response = await new Promise<IncomingMessage>((resolve, reject) => {
        opened.on('response', resolve);
        // Stays for good: an error after the answer began reaches the reader through the answer.
        opened.on('error', reject);
        if (upload === undefined) opened.end(payload);
        else upload.feed(opened);
      });
      return await this.#accept(call, response);
    } catch (error) {
      // The engine may refuse before it has read the whole body.
      upload?.release();
      request?.destroy();
      throw error;
    }
  }

  async #readText(call: EngineCall, response: IncomingMessage): Promise<string> {
    const chunks: Buffer[] = [];
    let length = 0;
    for await (const chunk of response as AsyncIterable<Buffer>) {
      length += chunk.length;
      if (length > maxJsonBytes) throw this.#protocolError(call, `more than ${maxJsonBytes} bytes`);
      chunks.push(chunk);
    }
    return Buffer.concat(chunks).toString('utf8');
  }

  #interpret<T, R>(call: EngineCall, text: string, read: (body: T) => R): R {
    try {
      return read((text.trim() === '' ? undefined : JSON.parse(text)) as T);
    } catch (cause) {
      const reason = cause instanceof SyntaxError ? 'the answer is not JSON' : 'the answer has another shape';
      throw this.#protocolError(call, reason, cause);
    }
  }

  async #upgrade(call: EngineCall, signal: AbortSignal): Promise<Duplex> {
    const payload = call.body === undefined ? undefined : JSON.stringify(call.body);
    const request = this.#open(call, signal, {
      Connection: 'Upgrade',
      Upgrade: 'tcp',
      ...(payload === undefined ? {} : jsonHeaders(payload)),
    });
    try {
      return await new Promise<Duplex>((resolve, reject) => {
        request.on('upgrade', (_response, socket, head) => {
          // Until its new owner listens, an error must not end the process; 'close' tells the owner all the same.
          socket.on('error', () => {});
          if (head.length > 0) socket.unshift(head);
          resolve(socket);
        });
        request.on('response', (response) => {
          this.#accept(call, response).then(
            () => reject(this.#protocolError(call, 'the connection was not upgraded')),
            reject,
          );
        });
        request.on('error', reject);
        request.end(payload);
      });
    } catch (error) {
      request.destroy();
      throw error;
    }
  }

  async #accept(call: EngineCall, response: IncomingMessage): Promise<IncomingMessage> {
    const status = response.statusCode ?? 0;
    // 304: the container is in the wanted state already.
    if ((status >= 200 && status < 300) || status === 304) return response;
    if (status < 400) throw this.#protocolError(call, `unexpected HTTP status ${status}`);
    const message = await readErrorMessage(response);
    throw statusError(describeCall(call), status, message, call.notFound);
  }

  #protocolError(call: EngineCall, reason: string, cause?: unknown): SallyportError {
    return new SallyportError('engine_protocol', `${describeCall(call)} at ${this.endpoint}: ${reason}`, {
      cause,
      details: { endpoint: this.endpoint },
    });
  }

  #explain(error: unknown, call: EngineCall, expired: boolean, upload?: Upload): Error {
    if (expired) {
      const timeoutMs = call.timeoutMs ?? defaultTimeoutMs;
      return new SallyportError(
        'engine_timeout',
        `${describeCall(call)}: the engine at ${this.endpoint} did not answer within ${timeoutMs} ms`,
        { cause: error, details: { endpoint: this.endpoint, timeoutMs } },
      );
    }
    if (call.signal?.aborted === true) {
      return new SallyportError('cancelled', `${describeCall(call)} was cancelled`, { cause: error });
    }
    if (upload?.failure !== undefined) return upload.failure;
    if (error instanceof SallyportError) return error;
    return connectionError(this.endpoint, error);
  }
}

function jsonHeaders(payload: string): Record<string, string> {
  return { 'Content-Type': 'application/json', 'Content-Length': String(Buffer.byteLength(payload)) };
}

function describeCall(call: EngineCall): string {
  return `${call.method} ${call.path.split('?')[0]}`;
}

function queryString(query: EngineCall['query']): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value !== undefined)
      parameters.set(name, typeof value === 'boolean' ? (value ? '1' : '0') : String(value));
  }
  const text = parameters.toString();
  return text === '' ? '' : `?${text}`;
}

function destroyOnAbort(stream: Readable | Duplex, signal: AbortSignal | undefined): void {
  if (signal === undefined) return;
  const onAbort = (): void => {
    stream.destroy(new SallyportError('cancelled', 'the stream was cancelled', { cause: signal.reason }));
  };
  if (signal.aborted) onAbort();
  else {
    signal.addEventListener('abort', onAbort, { once: true });
    stream.once('close', () => signal.removeEventListener('abort', onAbort));
  }
}
