/**
 * Relays one admitted request or WebSocket to a program inside, and the answer back, as it comes.
 *
 * SECURITY: the program inside is hostile, and an exception here would end the daemon. An answer that Node's parser accepts and
 * its writer refuses (a control character in the reason phrase, a status below 100) counts as no answer.
 */

import { type ClientRequest, request as httpRequest, type IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { type Duplex, pipeline } from 'node:stream';
import { hopHeaders } from '../../lib/hop-headers.ts';
import { headersInward, headersOutward } from './preview-headers.ts';

/** `inside` is a connection to the program; it ends with the request. `failed` is called if nothing was answered. */
export function relayRequest(
  request: IncomingMessage,
  response: ServerResponse,
  inside: Duplex,
  failed: () => void,
): void {
  const kept = inward(request, ['expect']);
  // Node would send the body of some methods without any framing.
  const framing = request.headers['transfer-encoding'] === undefined ? [] : ['Transfer-Encoding', 'chunked'];
  const asked = askInside(request, inside, [...kept, ...framing]);
  const answering = relayAnswer(asked, response, inside, failed);
  // A program that switches protocols unasked has not answered.
  asked.once('upgrade', () => answering.giveUp());
  pipeline(request, asked, () => {});
}

/** Relays a WebSocket once the program has agreed to it; else the program's answer, and then the connection ends. */
export function relayWebSocket(request: IncomingMessage, client: Duplex, head: Buffer, inside: Duplex): void {
  const kept = inward(request, ['expect', 'content-length']);
  const asked = askInside(request, inside, [...kept, 'Connection', 'Upgrade', 'Upgrade', 'websocket']);
  const refusal = refusalOn(client, request);
  const answering = relayAnswer(asked, refusal, inside, () => refusal.writeHead(502).end());
  asked.once('upgrade', (answer, _, early) => {
    answering.leave();
    refusal.detachSocket(client as Socket);
    const lines = ['HTTP/1.1 101 Switching Protocols', 'Connection: Upgrade', 'Upgrade: websocket'];
    const headers = headersOutward(answer);
    for (let at = 0; at < headers.length; at += 2) lines.push(`${headers[at]}: ${headers[at + 1]}`);
    client.write(Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'));
    client.write(early);
    inside.write(head);
    client.pipe(inside).pipe(client);
    // After its end the last bytes are still on their way to the client.
    inside.once('close', () => inside.readableEnded || client.destroy());
  });
  asked.end();
}

function inward({ headers, rawHeaders }: IncomingMessage, dropped: readonly string[]): string[] {
  const hop = hopHeaders((headers.connection ?? '').split(','));
  return headersInward(rawHeaders, (name) => !hop.has(name) && !dropped.includes(name));
}

/** Without an agent: a connection is never kept for another request, which may be for another sandbox. */
function askInside({ method, url }: IncomingMessage, inside: Duplex, headers: string[]): ClientRequest {
  return httpRequest({ createConnection: () => inside, method, path: url, headers, setHost: false });
}

interface Answering {
  /** Nothing that could be relayed will come. */
  giveUp(): void;
  /** From here on others see to the connection. */
  leave(): void;
}

function relayAnswer(
  asked: ClientRequest,
  response: ServerResponse,
  inside: Duplex,
  failed: () => void,
): Answering {
  let isOver = false;
  const giveUp = (): void => {
    if (isOver) return;
    isOver = true;
    inside.destroy();
    if (response.headersSent) response.destroy();
    else if (!response.destroyed) failed();
  };
  asked.once('response', (answer) => {
    const { statusCode: status = 0 } = answer;
    if (status >= 200 && begin(response, status, headersOutward(answer)))
      pipeline(answer, response, () => inside.destroy());
    else giveUp();
  });
  asked.on('error', giveUp);
  asked.once('close', () => response.headersSent || giveUp());
  response.once('close', () => inside.destroy());
  return {
    giveUp,
    leave: () => {
      isOver = true;
    },
  };
}

/** The program's reason phrase is left out: browsers ignore it. False: the answer cannot be written. */
function begin(response: ServerResponse, status: number, headers: string[]): boolean {
  try {
    response.writeHead(status, headers);
    response.flushHeaders();
    return true;
  } catch {
    return false;
  }
}

/** An answer to the request for a WebSocket that is none. The connection ends with it. */
function refusalOn(client: Duplex, request: IncomingMessage): ServerResponse {
  const response = new ServerResponse(request);
  response.shouldKeepAlive = false;
  response.assignSocket(client as Socket);
  response.once('finish', () => client.end());
  return response;
}
