/**
 * A negotiated connection to one engine: sends a call, enforces its deadline, turns failures into our errors.
 *
 * Three shapes of call: `json` (whole answer), `stream` (body pulled by the reader, so back-pressure reaches the engine)
 * and `hijack` (the connection becomes a raw two-way stream). Every call has a deadline; `signal` ends any of them.
 */

import type { ClientRequest, IncomingMessage, RequestOptions } from 'node:http';
import type { Duplex, Readable } from 'node:stream';
import { deadline } from '../../../lib/deadline.ts';
import { type ErrorCode, SallyportError } from '../../../protocol/errors.ts';
import { connectionError, readErrorMessage, statusError } from './errors.ts';
import type { Transport } from './transport.ts';

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

export class EngineConnection {
  readonly endpoint: string;
  readonly apiVersion: string | undefined;
  readonly #transport: Transport;

  constructor(transport: Transport, endpoint: string, apiVersion?: string) {
    this.#transport = transport;
    this.endpoint = endpoint;
    this.apiVersion = apiVersion;
  }

  async json<T>(call: EngineCall): Promise<T> {
    const limit = deadline(call.timeoutMs ?? defaultTimeoutMs, call.signal, uploadAdvances(call.upload));
    try {
      const response = await this.#respond(call, limit.signal);
      const chunks: Buffer[] = [];
      let length = 0;
      for await (const chunk of response as AsyncIterable<Buffer>) {
        length += chunk.length;
        if (length > maxJsonBytes) throw this.#protocolError(call, `more than ${maxJsonBytes} bytes`);
        chunks.push(chunk);
      }
      const text = Buffer.concat(chunks).toString('utf8');
      if (text.trim() === '') return undefined as T;
      try {
        return JSON.parse(text) as T;
      } catch (cause) {
        throw this.#protocolError(call, 'not JSON', cause);
      }
    } catch (error) {
      throw this.#explain(error, call, limit.expired());
    } finally {
      limit.dispose();
    }
  }

  /** The response with its body unread: whoever reads it slowly slows the engine down, not this process's memory. */
  async stream(call: EngineCall): Promise<IncomingMessage> {
    const limit = deadline(call.timeoutMs ?? defaultTimeoutMs, call.signal, uploadAdvances(call.upload));
    try {
      const response = await this.#respond(call, limit.signal);
      destroyOnAbort(response, call.signal);
      return response;
    } catch (error) {
      throw this.#explain(error, call, limit.expired());
    } finally {
      limit.dispose();
    }
  }

  async hijack(call: EngineCall): Promise<Duplex> {
    const limit = deadline(call.timeoutMs ?? defaultTimeoutMs, call.signal);
    try {
      const socket = await this.#upgrade(call, limit.signal);
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
      headers: { Host: 'docker', ...headers, ...call.headers },
      signal,
    };
    return this.#transport(options);
  }

  async #respond(call: EngineCall, signal: AbortSignal): Promise<IncomingMessage> {
    const { upload } = call;
    const payload = call.body === undefined ? undefined : JSON.stringify(call.body);
    const headers: Record<string, string> = {};
    if (payload !== undefined) {
      headers['Content-Type'] = 'application/json';
      headers['Content-Length'] = String(Buffer.byteLength(payload));
    } else if (upload !== undefined) {
      headers['Transfer-Encoding'] = 'chunked';
    }
    const request = this.#open(call, signal, headers);
    try {
      const response = await new Promise<IncomingMessage>((resolve, reject) => {
        request.on('response', resolve);
        request.on('error', reject);
        if (upload === undefined) request.end(payload);
        else {
          upload.on('error', (error) => request.destroy(error));
          upload.pipe(request);
        }
      });
      return await this.#accept(call, response);
    } catch (error) {
      // The engine may refuse before it has read the whole body.
      upload?.unpipe(request);
      upload?.destroy();
      request.destroy();
      throw error;
    }
  }

  async #upgrade(call: EngineCall, signal: AbortSignal): Promise<Duplex> {
    const request = this.#open(call, signal, { Connection: 'Upgrade', Upgrade: 'tcp' });
    return await new Promise<Duplex>((resolve, reject) => {
      request.on('upgrade', (_response, socket, head) => {
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
      request.end();
    });
  }

  async #accept(call: EngineCall, response: IncomingMessage): Promise<IncomingMessage> {
    const status = response.statusCode ?? 0;
    if (status >= 200 && status < 400) return response;
    const message = await readErrorMessage(response);
    throw statusError(describeCall(call), status, message, call.notFound);
  }

  #protocolError(call: EngineCall, reason: string, cause?: unknown): SallyportError {
    return new SallyportError('engine_protocol', `${describeCall(call)} at ${this.endpoint}: ${reason}`, {
      cause,
      details: { endpoint: this.endpoint },
    });
  }

  #explain(error: unknown, call: EngineCall, expired: boolean): SallyportError {
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
    if (error instanceof SallyportError) return error;
    return connectionError(this.endpoint, error);
  }
}

/** True while the body still moves, or while its producer (not the engine) is the one that is slow. */
function uploadAdvances(upload: Readable | undefined): () => boolean {
  if (upload === undefined) return () => false;
  let moved = false;
  upload.on('data', () => {
    moved = true;
  });
  // The listener above must not start the flow before the pipe is there to take it.
  upload.pause();
  return () => {
    const goOn = moved || (!upload.readableEnded && upload.readableFlowing === true);
    moved = false;
    return goOn;
  };
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
    stream.destroy(new SallyportError('cancelled', 'the stream was cancelled'));
  };
  if (signal.aborted) onAbort();
  else {
    signal.addEventListener('abort', onAbort, { once: true });
    stream.once('close', () => signal.removeEventListener('abort', onAbort));
  }
}
