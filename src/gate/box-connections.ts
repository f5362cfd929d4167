/**
 * The connections of one sandbox, from the moment that porter hands them over: judged, opened where a rule needs it, given their
 * credentials, dialled. All that reads what programs inside send is here and below. `BoxEgress` decides which sandbox has which entrances;
 * this runs beside it, or in a thread of its own (`thread/`).
 */

import { setMaxListeners } from 'node:events';
import type { Duplex } from 'node:stream';
import { type EgressPolicy, parsePolicy } from '../policy/egress/policy.ts';
import type { EgressSpec } from '../protocol/spec.ts';
import type { BoxCredentials } from './box-credentials.ts';
import type { Destination, Outcome } from './contract.ts';
import type { UpstreamProxy } from './dial.ts';
import { relayHttp } from './http/relay.ts';
import { UpstreamPool } from './http/upstream-pool.ts';
import { ProbedSession, probeName } from './preflight.ts';
import { serveProxy } from './proxy.ts';
import { RareNotes } from './rare-notes.ts';
import { RequestBudget } from './request-budget.ts';
import type { NameResolver } from './resolver.ts';
import { GateSession } from './session.ts';
import { type StreamParts, serveStream } from './stream.ts';

/** Where a connection arrived. */
export type ConnectionAt =
  | { readonly at: 'proxy' }
  | { readonly at: 'base-url'; readonly destination: Destination }
  | { readonly at: 'name'; readonly host: string; readonly port: number };

/** What `BoxEgress` asks of whoever serves the connections of its sandbox. */
export interface ConnectionServer {
  serve(tunnel: Duplex, where: ConnectionAt): void;
  /** The rules are others now; resolves with how many connections that closed, when none is judged by the old ones any more. */
  change(egress: EgressSpec): Promise<number>;
  /** As long as `work` runs one more name exists, which leads back here. */
  probing<T>(work: (name: string) => Promise<T>): Promise<T>;
  /** Closes what is open. It may be used again. */
  closeAll(): void;
  /** The sandbox is no longer there. */
  end(): void;
}

export interface ConnectionParts {
  readonly sandbox: string;
  readonly egress: EgressSpec;
  readonly credentials: BoxCredentials | undefined;
  readonly resolver: NameResolver;
  readonly proxy: ((signal: AbortSignal) => Promise<UpstreamProxy>) | undefined;
  readonly written: (outcome: Outcome) => void;
  readonly note: (code: string, message: string) => void;
  readonly report: (what: string, error: unknown) => void;
}

export class BoxConnections implements ConnectionServer {
  readonly #parts: ConnectionParts;
  readonly #session: GateSession;
  readonly #budget: RequestBudget;
  #life = newLife();
  #pool = new UpstreamPool();
  /** While we ask, and not a program. */
  #probed: ProbedSession | undefined;

  constructor(parts: ConnectionParts) {
    this.#parts = parts;
    this.#budget = new RequestBudget(new RareNotes(parts.note));
    this.#session = sessionOf(parts);
  }

  /** Nothing that a program inside sends may end the process: what fails ends its own connection. */
  serve(tunnel: Duplex, where: ConnectionAt): void {
    tunnel.on('error', () => {});
    this.#serve(tunnel, where, this.#streamParts()).catch((error: unknown) => {
      this.#parts.report('serve a connection of a sandbox', error);
      tunnel.destroy();
    });
  }

  async change(egress: EgressSpec): Promise<number> {
    return this.#session.change(policyOf(egress, this.#parts.credentials));
  }

  async probing<T>(work: (name: string) => Promise<T>): Promise<T> {
    const name = probeName();
    this.probeAs(name);
    try {
      return await work(name);
    } finally {
      if (this.#probed?.name === name) this.probeAs(undefined);
    }
  }

  /** `name` was made up by who asks. */
  probeAs(name: string | undefined): void {
    this.#probed = name === undefined ? undefined : new ProbedSession(this.#session, name);
  }

  closeAll(): void {
    this.#life.abort();
    this.#life = newLife();
    this.#pool.close();
    this.#pool = new UpstreamPool();
    this.#session.closeAll();
  }

  end(): void {
    this.closeAll();
    this.#parts.credentials?.close();
  }

  async #serve(tunnel: Duplex, where: ConnectionAt, parts: StreamParts): Promise<void> {
    switch (where.at) {
      case 'proxy':
        await serveProxy(tunnel, parts);
        return;
      case 'base-url': {
        const { session, signal, relay } = parts;
        const baseUrl = where.destination;
        const own = { entrance: 'base-url', scheme: 'https', baseUrl } as const;
        await relayHttp(tunnel, session, { ...own, ...relay, signal });
        return;
      }
      case 'name':
        await serveNamed(tunnel, where, parts);
    }
  }

  #streamParts(): StreamParts {
    const session = this.#probed ?? this.#session;
    const parts = { session, signal: this.#life.signal };
    const { credentials } = this.#parts;
    const shared = { pool: this.#pool, budget: this.#budget };
    if (credentials === undefined) return { ...parts, relay: shared };
    return {
      ...parts,
      relay: { ...credentials.relayParts(), ...shared },
      intercept: (client, hello, options) =>
        credentials.intercept(client, hello, session, { ...options, ...shared }),
    };
  }
}

export function sessionOf({
  sandbox,
  egress,
  credentials,
  resolver,
  proxy,
  written,
}: Omit<ConnectionParts, 'note' | 'report'>): GateSession {
  return new GateSession({
    sandbox,
    policy: policyOf(egress, credentials),
    proxy,
    resolver,
    needsInspection: (destination) => credentials?.needsInspection(destination) === true,
    written,
  });
}

/** Whoever gives a sandbox a secret wants it to reach the hosts that the secret is bound to. A deny still wins. */
export function policyOf(egress: EgressSpec, credentials: BoxCredentials | undefined): EgressPolicy {
  const hosts = credentials?.credentials.destinations() ?? [];
  const allow = [...(egress.allow ?? []), ...hosts.map(({ host, port }) => `${host}:${port}`)];
  return parsePolicy(hosts.length === 0 ? egress : { ...egress, allow });
}

/** Every connection listens to it. */
function newLife(): AbortController {
  const life = new AbortController();
  setMaxListeners(0, life.signal);
  return life;
}

async function serveNamed(
  client: Duplex,
  { host, port }: { readonly host: string; readonly port: number },
  parts: StreamParts,
): Promise<void> {
  await serveStream(
    client,
    {
      entrance: 'transparent',
      destination: { host, port, isAddress: false },
      accept: () => {},
      refuse: () => client.destroy(),
    },
    parts,
  );
}
