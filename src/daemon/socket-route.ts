/** A WebSocket route as data. What it is asked for is looked up before the handshake, so that a refusal is an ordinary answer. */

import type { WebSocket } from 'ws';
import type { QueryFields, QueryOf } from './query.ts';
import type { SandboxSurface } from './surface.ts';

export interface SocketContext<Q> {
  readonly params: Readonly<Record<string, string>>;
  readonly query: Q;
  readonly sandbox: SandboxSurface;
}

/** Speaks until the connection or the conversation is over. */
export type Conversation = (socket: WebSocket, signal: AbortSignal) => Promise<void>;

export interface SocketRoute {
  readonly path: string;
  readonly summary: string;
  readonly query: QueryFields;
  readonly open: (context: SocketContext<unknown>) => Promise<Conversation>;
}

export function socketRoute<Q extends QueryFields>(definition: {
  readonly path: string;
  readonly summary: string;
  readonly query: Q;
  readonly open: (context: SocketContext<QueryOf<Q>>) => Promise<Conversation>;
}): SocketRoute {
  // The server reads the query by `query` before it calls this.
  return { ...definition, open: definition.open as SocketRoute['open'] };
}
