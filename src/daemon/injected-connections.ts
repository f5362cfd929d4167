/**
 * Connections of a bound port for an HTTP server that does not listen itself. Node watches over slow request heads only for
 * servers that listen, so this does it: a connection that has brought no request in time is closed, and whoever may
 * connect and nothing else cannot occupy every place of the port.
 */

import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';

const usualHeadMs = 30_000;

export class InjectedConnections {
  readonly #server: Server;
  readonly #headMs: number;
  readonly #waiting = new WeakMap<Duplex, NodeJS.Timeout>();

  constructor(server: Server, headMs = usualHeadMs) {
    this.#server = server;
    this.#headMs = headMs;
    server.on('request', ({ socket }: IncomingMessage) => this.requestCame(socket));
  }

  readonly take = (socket: Socket): void => {
    const timer = setTimeout(() => socket.destroy(), this.#headMs).unref();
    this.#waiting.set(socket, timer);
    this.#server.emit('connection', socket);
  };

  /** For a server that takes upgrades: a listener of them here would take them away from one that does not. */
  requestCame(socket: Duplex): void {
    clearTimeout(this.#waiting.get(socket));
    this.#waiting.delete(socket);
  }
}
