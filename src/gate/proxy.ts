/** The explicit entrance: one port inside that speaks HTTP and SOCKS5, told apart by the first byte. */

import type { Duplex } from 'node:stream';
import type { Denied, Destination } from './contract.ts';
import { nextChunk } from './dial.ts';
import { type Refusal, refusalBody, refusalOfDenied } from './http/denial.ts';
import { relayHttp } from './http/relay.ts';
import { serveSocks } from './socks.ts';
import { withFirstBytes } from './splice.ts';
import { type StreamParts, serveStream } from './stream.ts';

const firstByteMs = 30_000;

export async function serveProxy(client: Duplex, parts: StreamParts): Promise<void> {
  const silent = setTimeout(() => client.destroy(), firstByteMs);
  const first = await nextChunk(client, parts.signal);
  clearTimeout(silent);
  if (first === undefined) {
    client.destroy();
    return;
  }
  if (first[0] === 5) {
    await serveSocks(client, first, parts);
    return;
  }
  const { session, signal, relay } = parts;
  await relayHttp(withFirstBytes(client, first), session, {
    ...relay,
    entrance: 'http',
    scheme: 'http',
    onConnect: (target, tunnel, head) => serveConnect(tunnel, head, target, parts),
    signal,
  });
}

async function serveConnect(
  client: Duplex,
  head: Buffer,
  destination: Destination,
  parts: StreamParts,
): Promise<void> {
  await serveStream(
    withFirstBytes(client, head),
    {
      entrance: 'connect',
      destination,
      accept: () => client.write('HTTP/1.1 200 Connection established\r\n\r\n'),
      refuse: (why) => refuse(client, destination, why),
    },
    parts,
  );
}

/** Closed when it is sent: a client that got no tunnel has nothing more to say on this connection. */
function refuse(client: Duplex, destination: Destination, why: Denied | { readonly failed: string }): void {
  const refusal = 'failed' in why ? unreachable(why.failed) : refusalOfDenied(why);
  const body = refusalBody(refusal, destination);
  const head = [
    `HTTP/1.1 ${refusal.status === 403 ? '403 Forbidden' : '502 Bad Gateway'}`,
    'content-type: application/json',
    `content-length: ${body.length}`,
    'connection: close',
  ];
  client.end(Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), body]));
  client.resume();
}

const unreachable = (message: string): Refusal => ({
  status: 502,
  code: 'unreachable',
  message,
  advice: 'It is allowed; see whether it is there.',
});
