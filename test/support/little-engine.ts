/**
 * Small servers that misbehave in one known way each: on a Unix socket, or on a port of the loopback interface. They stand
 * in for engines that a healthy one cannot play (stuck, too old, dying half-way); nothing else is tested against them.
 */

import { mkdtempSync, rmSync } from 'node:fs';
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { EngineConnection } from '../../src/engines/docker/wire/connection.ts';
import { openTransport } from '../../src/engines/docker/wire/transport.ts';

export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Listens until the test ends, then drops whoever is still connected. */
export async function listen(server: net.Server, path: string): Promise<void> {
  const sockets = new Set<net.Socket>();
  server.on('connection', (socket: net.Socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(path, resolve);
  });
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
}

/** Speaks no HTTP by itself: gets each connection raw. */
export async function rawServer(onConnection: (socket: net.Socket) => void, path?: string): Promise<string> {
  const socketPath = path ?? join(temporaryFolder(), 'engine.sock');
  await listen(net.createServer(onConnection), socketPath);
  return socketPath;
}

export async function httpServer(
  answer: (request: IncomingMessage, response: ServerResponse) => void,
  path?: string,
): Promise<string> {
  const socketPath = path ?? join(temporaryFolder(), 'engine.sock');
  await listen(http.createServer(answer), socketPath);
  return socketPath;
}

/** Answers a ping as an engine of this API version would, and nothing else. */
export async function pingServer(apiVersion: string, path?: string): Promise<string> {
  return await httpServer((_request, response) => {
    response.writeHead(200, { 'Api-Version': apiVersion, Ostype: 'linux' });
    response.end('OK');
  }, path);
}

export function connectionTo(path: string): EngineConnection {
  return new EngineConnection(openTransport({ kind: 'unix', path }), `unix://${path}`, '1.41');
}
