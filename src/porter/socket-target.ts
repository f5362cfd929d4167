/** Where to connect to, or to listen, inside a sandbox, and how the protocol writes that. */

import { SallyportError } from '../protocol/errors.ts';
import { PayloadWriter } from './payload.ts';

export interface TcpTarget {
  /** An IPv4 or IPv6 literal, or `localhost`: nothing is resolved inside. */
  readonly host: string;
  readonly port: number;
}

export interface PathTarget {
  /** Of a Unix socket; at most 107 bytes. */
  readonly path: string;
}

export type SocketTarget = TcpTarget | PathTarget;

export const targetKind = { tcp: 1, path: 2, dns: 3 } as const;

export function encodeTarget(target: SocketTarget, tcpKind: 1 | 3 = targetKind.tcp): Buffer {
  if ('path' in target) return new PayloadWriter().u32(targetKind.path).bytes(target.path).u16(0).end();
  const { host, port } = target;
  if (!Number.isInteger(port) || port < 0 || port > 65535) {
    throw new SallyportError('usage', `${port} is not a port`);
  }
  return new PayloadWriter().u32(tcpKind).bytes(host).u16(port).end();
}

export function describeTarget(target: SocketTarget): string {
  if ('path' in target) return target.path;
  return target.host.includes(':') ? `[${target.host}]:${target.port}` : `${target.host}:${target.port}`;
}
