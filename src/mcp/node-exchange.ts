/** A request of Node's HTTP server as the web's `Request`, and a `Response` as its answer, no faster than the client takes it. */

import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { isDeeperThan } from '../lib/json-depth.ts';
import { SallyportError } from '../protocol/errors.ts';
import type { HttpAsk } from './http-sessions.ts';

/** A file that a model writes is in one message. */
const mostBodyBytes = 16 * 2 ** 20;
const deepestMessage = 100;
const streamType = 'text/event-stream';
const messageHead = Buffer.from('event: message\ndata: ');

/** Undefined: its body is too large. */
export async function webRequest(
  request: IncomingMessage,
  response: ServerResponse,
): Promise<HttpAsk | undefined> {
  const body = await bodyOf(request);
  if (body === undefined) return undefined;
  const gone = new AbortController();
  const atTheEnd: (() => void)[] = [];
  response.once('close', () => {
    if (!response.writableFinished) gone.abort();
    for (const done of atTheEnd) done();
  });
  const { method = 'GET', headers } = request;
  const hasBody = method !== 'GET' && method !== 'HEAD' && body.length > 0;
  // SECURITY: the loop of the whole daemon waits while a message is parsed.
  if (hasBody && isDeeperThan(deepestMessage, body))
    throw new SallyportError('request_invalid', 'the message is nested too deeply', {
      details: { limit: deepestMessage },
    });
  const parsed = hasBody ? parse(body) : undefined;
  return {
    request: new Request(`http://${headers.host ?? 'localhost'}${request.url ?? '/'}`, {
      method,
      headers: plainHeaders(headers),
      signal: gone.signal,
      // Whoever gets what was parsed does not read it again.
      ...(hasBody && parsed === undefined ? { body: new Uint8Array(body) } : {}),
    }),
    ...(parsed === undefined ? {} : { parsed }),
    whenOver: (done) => void (response.closed ? done() : atTheEnd.push(done)),
  };
}

/**
 * An answer that is one message, and is there when its stream begins, goes out as JSON with one write: that costs the client
 * and this process a good deal less than a stream. All else is sent as it comes, and a stream that was asked for by no message
 * is open at once.
 */
export async function sendResponse(
  response: ServerResponse,
  { parsed }: Pick<HttpAsk, 'parsed'>,
  answer: Response,
): Promise<void> {
  const { status, body } = answer;
  const headers = Object.fromEntries(answer.headers);
  if (body === null) {
    response.writeHead(status, headers).end();
    return;
  }
  if (headers['content-type'] !== streamType) {
    sendWhole(response, status, headers, Buffer.from(await answer.arrayBuffer()));
    return;
  }
  const reader = body.getReader();
  const stop = (): void => void reader.cancel().catch(() => {});
  response.once('close', stop);
  try {
    if (!isOneMessage(parsed)) response.writeHead(status, headers).flushHeaders();
    const first = await reader.read();
    const second = reader.read();
    const isAll = await Promise.race([second.then(({ done }) => done), turnOfTheLoop()]);
    const only = response.headersSent || !isAll ? undefined : onlyMessage(first.value);
    if (only !== undefined) {
      sendWhole(response, status, { ...headers, 'content-type': 'application/json' }, only);
      return;
    }
    if (!response.headersSent) response.writeHead(status, headers);
    for (let piece = first, next = second; !piece.done && !response.destroyed; next = reader.read()) {
      if (!response.write(piece.value))
        await Promise.race([once(response, 'drain'), once(response, 'close')]);
      piece = await next;
    }
    response.end();
  } finally {
    response.off('close', stop);
  }
}

const isOneMessage = (parsed: unknown): boolean =>
  typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed);

const turnOfTheLoop = async (): Promise<false> =>
  await new Promise((resolve) => setImmediate(resolve, false));

/** Undefined: it is not one message and nothing besides. */
function onlyMessage(piece: Uint8Array | undefined): Buffer | undefined {
  const bytes = Buffer.from(piece ?? []);
  const isEvent = bytes.subarray(0, messageHead.length).equals(messageHead);
  const lineEnd = bytes.indexOf('\n', messageHead.length);
  return isEvent && lineEnd === bytes.length - 2 ? bytes.subarray(messageHead.length, lineEnd) : undefined;
}

function sendWhole(
  response: ServerResponse,
  status: number,
  headers: Readonly<Record<string, string>>,
  body: Buffer,
): void {
  response.writeHead(status, { ...headers, 'content-length': body.length });
  response.end(body);
}
async function bodyOf(request: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > mostBodyBytes) break;
    chunks.push(chunk);
  }
  if (bytes > mostBodyBytes) {
    // Read to its end and thrown away: a client that still writes does not look for an answer.
    request.resume();
    return undefined;
  }
  return Buffer.concat(chunks, bytes);
}

/** SECURITY: the token is left out. What answers has no use for it, and what it keeps or tells cannot have it. */
function plainHeaders(headers: IncomingMessage['headers']): [string, string][] {
  return Object.entries(headers).flatMap(([name, value]): [string, string][] =>
    value === undefined || name === 'authorization'
      ? []
      : [[name, Array.isArray(value) ? value.join(', ') : value]],
  );
}

function parse(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    return undefined;
  }
}
