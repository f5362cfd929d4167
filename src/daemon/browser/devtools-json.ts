/**
 * The answers of DevTools that name WebSockets. Addresses in them are written anew, so that they lead through the same port with its token.
 * The browser is in the sandbox: of what it says only the path of a DevTools target is used.
 */

import { request as httpRequest, type IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';

const listings: readonly string[] = ['/json', '/json/list', '/json/version', '/json/new'];
const mostBytes = 4 * 2 ** 20;

export const isListing = (path: string): boolean =>
  listings.includes((path.split('?', 1)[0] ?? '').replace(/\/$/, ''));

/** `inside` ends with the answer. Rejects where the browser does not answer with JSON. */
export async function askListing(
  { method, host, path }: { readonly method: string; readonly host: string; readonly path: string },
  inside: Duplex,
): Promise<{ readonly status: number; readonly body: unknown }> {
  try {
    const asked = httpRequest({ createConnection: () => inside, method, path, headers: { host } });
    const answer = new Promise<IncomingMessage>((resolve, reject) => {
      asked
        .once('response', resolve)
        .once('error', reject)
        .once('close', () => reject(new Error('it closed')));
    });
    asked.end();
    const response = await answer;
    const pieces: Buffer[] = [];
    let bytes = 0;
    for await (const piece of response as AsyncIterable<Buffer>) {
      bytes += piece.length;
      if (bytes > mostBytes) throw new Error(`the answer has more than ${mostBytes} bytes`);
      pieces.push(piece);
    }
    return { status: response.statusCode ?? 502, body: JSON.parse(Buffer.concat(pieces).toString('utf8')) };
  } finally {
    inside.destroy();
  }
}

/** `base` is `127.0.0.1:<port>/<token>`. */
export function throughDoor(body: unknown, base: string): unknown {
  if (Array.isArray(body)) return body.map((target) => throughDoor(target, base));
  if (typeof body !== 'object' || body === null) return body;
  const { webSocketDebuggerUrl, ...rest } = body as Readonly<Record<string, unknown>>;
  const path = typeof webSocketDebuggerUrl === 'string' ? targetPath(webSocketDebuggerUrl) : undefined;
  return {
    // A frontend is a web page, which the port refuses.
    ...Object.fromEntries(Object.entries(rest).filter(([name]) => !name.startsWith('devtoolsFrontendUrl'))),
    ...(path === undefined ? {} : { webSocketDebuggerUrl: `ws://${base}${path}` }),
  };
}

const targetPath = (address: string): string | undefined =>
  /^ws:\/\/[^/]+(\/devtools\/\w+\/[\w-]+)$/.exec(address)?.[1];
