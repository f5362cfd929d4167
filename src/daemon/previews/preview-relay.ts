/** One admitted request, or WebSocket, to a program inside and back, as it comes: nothing is held until it is whole. */

import { request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import { type Duplex, pipeline } from 'node:stream';
import { hopHeaders } from '../../lib/hop-headers.ts';
import { previewCookie, withoutPreviewCookie } from './preview-access.ts';

/** `inside` is a connection to the program; it ends with the request. `failed` is called if nothing was answered. */
export function relayRequest(
  request: IncomingMessage,
  response: ServerResponse,
  inside: Duplex,
  failed: () => void,
): void {
  const hop = hopHeaders((request.headers.connection ?? '').split(','));
  // Without an agent: a connection is never kept for another request, which may be for another sandbox.
  const asked = httpRequest({
    createConnection: () => inside,
    method: request.method,
    path: request.url,
    headers: headersInward(request.rawHeaders, (name) => !hop.has(name) && name !== 'expect'),
    setHost: false,
  });
  asked.once('response', (answer) => {
    response.writeHead(answer.statusCode ?? 502, answer.statusMessage, headersOutward(answer));
    response.flushHeaders();
    pipeline(answer, response, () => inside.destroy());
  });
  asked.once('error', () => {
    inside.destroy();
    if (response.headersSent) response.destroy();
    else failed();
  });
  response.once('close', () => inside.destroy());
  pipeline(request, asked, () => {});
}

/** The two speak to each other from here on. */
export function relayWebSocket(request: IncomingMessage, client: Duplex, head: Buffer, inside: Duplex): void {
  const lines = [`${request.method} ${request.url} HTTP/1.1`];
  const headers = headersInward(request.rawHeaders, (name) => name !== 'expect');
  for (let at = 0; at < headers.length; at += 2) lines.push(`${headers[at]}: ${headers[at + 1]}`);
  inside.write(Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'));
  inside.write(head);
  pipeline(client, inside, () => {});
  pipeline(inside, client, () => {});
}

/** Name and value in turn, as Node has them. */
function headersInward(raw: readonly string[], isKept: (name: string) => boolean): string[] {
  return pairs(raw).flatMap(([name, value]) => {
    if (!isKept(name.toLowerCase())) return [];
    if (name.toLowerCase() !== 'cookie') return [name, value];
    const cookie = withoutPreviewCookie(value);
    return cookie === '' ? [] : [name, cookie];
  });
}

/** SECURITY: a cookie of one sandbox is for its own host, and none of them takes the place of ours. */
function headersOutward({ rawHeaders, headers }: IncomingMessage): string[] {
  const hop = hopHeaders((headers.connection ?? '').split(','));
  return pairs(rawHeaders).flatMap(([name, value]) => {
    const lower = name.toLowerCase();
    if (hop.has(lower)) return [];
    if (lower !== 'set-cookie') return [name, value];
    if (value.trimStart().startsWith(`${previewCookie}=`)) return [];
    return [name, value.replaceAll(/;\s*domain\s*=[^;]*/gi, '')];
  });
}

function pairs(raw: readonly string[]): readonly (readonly [string, string])[] {
  return raw.flatMap((name, at) => (at % 2 === 0 ? [[name, raw[at + 1] ?? ''] as const] : []));
}
