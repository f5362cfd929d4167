/** Servers and clients on this machine's loopback that a porter running as a plain child connects to, or is connected to by. */

import { mkdtemp, rm } from 'node:fs/promises';
import {
  type AddressInfo,
  connect,
  createServer,
  type NetConnectOpts,
  type Server,
  type Socket,
} from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { onTestFinished } from 'vitest';

/** A server that lasts as long as the test; returns its port, or 0 at a path. */
export async function serve(onSocket: (socket: Socket) => void, path?: string): Promise<number> {
  const sockets = new Set<Socket>();
  const server: Server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    onSocket(socket);
  });
  await new Promise<void>((resolve) =>
    path === undefined ? server.listen(0, '127.0.0.1', resolve) : server.listen(path, resolve),
  );
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return path === undefined ? (server.address() as AddressInfo).port : 0;
}

/** A connected socket that lasts as long as the test. */
export async function dial(options: NetConnectOpts): Promise<Socket> {
  const socket = connect({ ...options, allowHalfOpen: true });
  onTestFinished(() => {
    socket.destroy();
  });
  await new Promise<void>((resolve, reject) => {
    socket.once('connect', resolve);
    socket.once('error', reject);
  });
  return socket;
}

/** How a socket ends: `end`, or the code of its error. */
export function ending(stream: Readable): Promise<string> {
  return new Promise((resolve) => {
    stream.once('end', () => resolve('end'));
    stream.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    stream.resume();
  });
}

/** How a socket learns that the other side is gone: it writes until that fails. A side that ended its own half alone would take it all. */
export async function lossOf(socket: Socket): Promise<string> {
  const code = new Promise<string>((resolve) =>
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message)),
  );
  const writing = setInterval(() => socket.write('x'), 10);
  try {
    return await code;
  } finally {
    clearInterval(writing);
  }
}

/** How a connection to there ends, which may be before it has begun. */
export async function fate(options: NetConnectOpts): Promise<string> {
  const socket = await dial(options).catch((error: NodeJS.ErrnoException) => error);
  return socket instanceof Error ? (socket.code ?? socket.message) : await ending(socket);
}

/** To its end. (Iterating would destroy the stream at the end, and with it the half that is still open.) */
export function readAll(stream: Readable): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    stream.once('end', () => resolve(Buffer.concat(chunks)));
    stream.once('error', reject);
  });
}

/** The next bytes, as text. */
export function heard(stream: Readable): Promise<string> {
  return new Promise((resolve) => stream.once('data', (chunk: Buffer) => resolve(chunk.toString())));
}

export async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'sallyport-sockets-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}
