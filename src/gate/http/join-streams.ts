/** Two connections become one: bytes pass both ways as they come, each side at the pace of the other. */

import type { Duplex } from 'node:stream';
import { writeTo } from './body.ts';
import type { ByteReader } from './byte-reader.ts';

interface End {
  readonly stream: Duplex;
  readonly reader: ByteReader;
}

/** Resolves when both directions are over; an end that breaks takes the other with it. */
export async function joinStreams(
  client: End,
  server: End,
  count: { out: number; in: number },
): Promise<void> {
  const pump = async (from: End, to: End, counted: (bytes: number) => void): Promise<void> => {
    try {
      for (;;) {
        const piece = await from.reader.some(65_536);
        if (piece === undefined) break;
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
