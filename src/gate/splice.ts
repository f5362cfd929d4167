/** Two connections become one: the end of one side is passed on, the loss of one is the loss of both. */

import type { Duplex } from 'node:stream';

export interface Counts {
  bytesOut: number;
  bytesIn: number;
}

/** Resolves when both are over. `first` goes to the server before anything else. */
export async function splice(client: Duplex, server: Duplex, first: Buffer, counts: Counts): Promise<void> {
  const both = [client, server];
  const dropAll = (): void => {
    for (const stream of both) stream.destroy();
  };
  for (const stream of both) {
    stream.once('error', dropAll);
    stream.once('close', dropAll);
  }
  if (client.destroyed || server.destroyed) dropAll();
  const closed = Promise.all(both.map(closing));
  if (first.length > 0) {
    counts.bytesOut += first.length;
    server.write(first);
  }
  client.on('data', (chunk: Buffer) => {
    counts.bytesOut += chunk.length;
  });
  server.on('data', (chunk: Buffer) => {
    counts.bytesIn += chunk.length;
  });
  client.pipe(server);
  server.pipe(client);
  await closed;
}

async function closing(stream: Duplex): Promise<void> {
  if (stream.closed) return;
  await new Promise<void>((resolve) => {
    stream.once('close', resolve);
  });
}

/** The stream with what was read of it already put back in front. */
export function withFirstBytes(stream: Duplex, first: Buffer): Duplex {
  if (first.length > 0) stream.unshift(first);
  return stream;
}
