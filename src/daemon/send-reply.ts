/**
 * Writes a reply to a response, no faster than the client takes it. What fails after the head was sent cuts the
 * connection, so that a broken answer is never taken for a whole one.
 */

import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { SallyportError } from '../protocol/errors.ts';
import { errorBody, statusOf } from './http-error.ts';
import type { Reply, SseMessage } from './route.ts';

const heartbeatMs = 15_000;
/** Most commands are over by then; for the others their id is worth a write of its own. */
const headAfterMs = 5;
const jsonType = 'application/json; charset=utf-8';

export async function sendReply(response: ServerResponse, reply: Reply, signal: AbortSignal): Promise<void> {
  switch (reply.type) {
    case 'json':
      sendWhole(response, reply.status, jsonType, JSON.stringify(reply.body), reply.headers);
      return;
    case 'late-json':
      await sendLate(response, reply);
      return;
    case 'empty':
      response.writeHead(204).end();
      return;
    case 'text':
      sendWhole(response, 200, reply.contentType, reply.body);
      return;
    case 'bytes':
      await sendBytes(response, reply, signal);
      return;
    case 'events':
      await sendEvents(response, reply.messages, signal);
  }
}

export function sendError(response: ServerResponse, error: SallyportError): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  sendWhole(response, statusOf(error), jsonType, JSON.stringify(errorBody(error)));
}

function sendWhole(
  response: ServerResponse,
  status: number,
  contentType: string,
  text: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  const body = Buffer.from(text, 'utf8');
  response.writeHead(status, { 'content-type': contentType, 'content-length': body.length, ...headers });
  response.end(body);
}

/** What is over at once is answered at once, with one write. */
async function sendLate(
  response: ServerResponse,
  { headers, body }: Extract<Reply, { type: 'late-json' }>,
): Promise<void> {
  const head = (): void => {
    if (response.headersSent || response.destroyed) return;
    response.writeHead(200, { 'content-type': jsonType, ...headers });
    response.flushHeaders();
  };
  const timer = setTimeout(head, headAfterMs);
  try {
    const text = JSON.stringify(await body);
    if (response.headersSent) response.end(text);
    else sendWhole(response, 200, jsonType, text, headers);
  } finally {
    clearTimeout(timer);
  }
}

async function sendBytes(
  response: ServerResponse,
  reply: Extract<Reply, { type: 'bytes' }>,
  signal: AbortSignal,
): Promise<void> {
  const head = (): void => {
    response.writeHead(200, { 'content-type': reply.contentType });
    response.flushHeaders();
  };
  if (!reply.eager) head();
  for await (const chunk of reply.chunks) {
    if (!response.headersSent) head();
    await write(response, chunk, signal);
  }
  if (!response.headersSent) head();
  response.end();
}

async function sendEvents(
  response: ServerResponse,
  messages: AsyncIterable<SseMessage>,
  signal: AbortSignal,
): Promise<void> {
  response.writeHead(200, {
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-store',
  });
  response.flushHeaders();
  // A reader that does not read needs no sign of life.
  const heartbeat = setInterval(
    () => response.writableNeedDrain || response.write(': alive\n\n'),
    heartbeatMs,
  );
  try {
    for await (const message of messages) await write(response, encodeMessage(message), signal);
    response.end();
  } finally {
    clearInterval(heartbeat);
  }
}

function encodeMessage({ id, event, data }: SseMessage): string {
  const head = `${id === undefined ? '' : `id: ${id}\n`}${event === undefined ? '' : `event: ${event}\n`}`;
  return `${head}data: ${JSON.stringify(data)}\n\n`;
}

async function write(
  response: ServerResponse,
  chunk: Uint8Array | string,
  signal: AbortSignal,
): Promise<void> {
  signal.throwIfAborted();
  if (response.write(chunk)) return;
  await once(response, 'drain', { signal });
}
