/** Two connections become one: bytes pass both ways as they come, each side at the pace of the other. */

import type { Duplex } from 'node:stream';
import { writeTo } from './body.ts';

interface End {
  readonly stream: Duplex;
  /** What it sends. */
  readonly bytes: AsyncIterable<Buffer>;
}

/** Resolves when both directions are over; an end that breaks takes the other with it. */
export async function joinStreams(
  client: End,
  server: End,
  count: { out: number; in: number },
): Promise<void> {
  const pump = async (from: End, to: End, counted: (bytes: number) => void): Promise<void> => {
    try {
      for await (const piece of from.bytes) {
        counted(piece.length);
        await writeTo(to.stream, piece);
      }
      to.stream.end();
    } catch {
      from.stream.destroy();
      to.stream.destroy();
    }
  };
  await Promise.all([
    pump(client, server, (bytes) => {
      count.out += bytes;
    }),
    pump(server, client, (bytes) => {
      count.in += bytes;
    }),
  ]);
  client.stream.destroy();
  server.stream.destroy();
}
