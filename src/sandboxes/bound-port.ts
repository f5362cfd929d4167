/** Listeners of this machine for one published port: on both loopback addresses, or on the one that was named. */

import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { SallyportError } from '../protocol/errors.ts';
import { type PortSpec, writePort } from '../protocol/port-spec.ts';

export interface PublishedPort extends PortSpec {
  readonly host: number;
}

export interface BoundPort {
  readonly port: PublishedPort;
  /** From now on; until then whoever connects is turned away. */
  take(handler: (socket: Socket) => void): void;
  /** Also what is connected. */
  close(): void;
}

const loopback = ['127.0.0.1', '::1'] as const;
const mostConnections = 256;
/** A port that is free on one loopback address may be taken on the other. */
const mostAttempts = 20;

export const addressesOf = ({ address }: PortSpec): readonly string[] =>
  address === undefined ? loopback : [address];

/** Rejects with `port_unavailable`; then nothing is bound. */
export async function bindPort(spec: PortSpec): Promise<BoundPort> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await bindOnce(spec);
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code;
      if (spec.host === undefined && code === 'EADDRINUSE' && attempt < mostAttempts) continue;
      throw unavailable(spec, error as NodeJS.ErrnoException);
    }
  }
}

/** All or none. */
export async function bindPorts(specs: readonly PortSpec[]): Promise<readonly BoundPort[]> {
  const bound: BoundPort[] = [];
  try {
    for (const spec of specs) bound.push(await bindPort(spec));
    return bound;
  } catch (error) {
    for (const port of bound) port.close();
    throw error;
  }
}

async function bindOnce(spec: PortSpec): Promise<BoundPort> {
  const servers: Server[] = [];
  const sockets = new Set<Socket>();
  let handler: ((socket: Socket) => void) | undefined;
  const onConnection = (socket: Socket): void => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    // Whoever handles it listens as well; until then a reset must not end the process.
    socket.on('error', () => {});
    if (handler === undefined) socket.destroy();
    else handler(socket);
  };
  const close = (): void => {
    for (const server of servers) server.close();
    for (const socket of sockets) socket.destroy();
  };
  let host = spec.host ?? 0;
  try {
    for (const address of addressesOf(spec)) {
      const server = await listen(address, host, onConnection).catch((error: NodeJS.ErrnoException) => {
        // A machine without IPv6 has one loopback address.
        if (servers.length > 0 && isNoAddress(error)) return undefined;
        throw error;
      });
      if (server === undefined) continue;
      servers.push(server);
      const bound = server.address();
      if (typeof bound === 'object' && bound !== null) host = bound.port;
    }
  } catch (error) {
    close();
    throw error;
  }
  return {
    port: { ...spec, host },
    take: (taken) => {
      handler = taken;
    },
    close,
  };
}

async function listen(address: string, port: number, taken: (socket: Socket) => void): Promise<Server> {
  const server = createServer({ allowHalfOpen: true, noDelay: true }, taken);
  server.maxConnections = mostConnections;
  server.listen({ host: address, port, ipv6Only: true });
  await once(server, 'listening');
  // What a listener reports later is of single connections.
  server.on('error', () => {});
  return server;
}

const isNoAddress = ({ code }: NodeJS.ErrnoException): boolean =>
  code === 'EADDRNOTAVAIL' || code === 'EAFNOSUPPORT';

const reasons: Readonly<Record<string, string>> = {
  EADDRINUSE: 'another program of this machine listens there',
  EACCES: 'this user may not listen there; ports below 1024 are for root',
  EADDRNOTAVAIL: 'this machine has no such address',
};

function unavailable(spec: PortSpec, error: NodeJS.ErrnoException): SallyportError {
  const why = reasons[error.code ?? ''] ?? error.message;
  return new SallyportError('port_unavailable', `port ${writePort(spec)} cannot be published: ${why}`, {
    cause: error,
    details: { port: writePort(spec), ...(error.code === undefined ? {} : { reason: error.code }) },
  });
}
