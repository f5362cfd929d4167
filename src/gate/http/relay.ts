/**
 * A client that speaks HTTP/1.1, request after request. Each is judged by itself: that the one before it was allowed says
 * nothing about the next, also when both came in one packet. The entrances of the gate call this with the connection.
 */

import { setMaxListeners } from 'node:events';
import type { Duplex } from 'node:stream';
import type { Attempt, Destination, EgressSession, Entrance } from '../contract.ts';
import type { RequestBudget } from '../request-budget.ts';
import { readAuthority, sameDestination, writeAuthority } from './authority.ts';
import { readBody } from './body.ts';
import { ByteReader } from './byte-reader.ts';
import { ClientAnswer } from './client-answer.ts';
import type { RequestCredentials } from './credential-port.ts';
import { type Refusal, refusalOfError } from './denial.ts';
import { type ClientRequest, Exchanges } from './exchange.ts';
import { requestFraming } from './framing.ts';
import type { RequestHead } from './head.ts';
import { endToEnd } from './headers.ts';
import { readRequestHead } from './read-heads.ts';
import { defaultPorts, hostOf, readTarget } from './target.ts';
import type { UpstreamTls } from './upstream.ts';
import type { UpstreamPool } from './upstream-pool.ts';
import { HttpViolation } from './violation.ts';

export interface RelayLimits {
  /** From the first byte of a head to its last. */
  readonly headMs: number;
}

export interface RelayOptions {
  readonly entrance: Entrance;
  readonly scheme: 'http' | 'https';
  /** Set where the connection itself says for whom it is: Host must equal it. Absent: each request names its host. */
  readonly authority?: Destination;
  /** Instead of `authority`: whatever comes is for this service, by HTTPS. Host names the listener in the sandbox. */
  readonly baseUrl?: Destination;
  readonly credentials?: RequestCredentials;
  readonly upstreamTls?: UpstreamTls;
  readonly pool?: UpstreamPool;
  readonly budget?: RequestBudget;
  /** CONNECT, where it is allowed at all: at the entrance of the proxy. */
  readonly onConnect?: (target: Destination, client: Duplex, head: Buffer) => Promise<void>;
  readonly limits?: RelayLimits;
  readonly signal: AbortSignal;
}

const usualLimits: RelayLimits = { headMs: 15_000 };

/** Resolves when the connection is over, whichever side ended it. The client is closed then, unless it became a tunnel. */
export async function relayHttp(
  client: Duplex,
  session: EgressSession,
  options: RelayOptions,
): Promise<void> {
  await new Relay(client, session, options).run();
}

class Relay {
  readonly #client: Duplex;
  readonly #session: EgressSession;
  readonly #options: RelayOptions;
  readonly #reader: ByteReader;
  readonly #exchanges: Exchanges;

  constructor(client: Duplex, session: EgressSession, options: RelayOptions) {
    this.#client = client;
    this.#session = session;
    this.#options = options;
    this.#reader = new ByteReader(client);
    this.#exchanges = new Exchanges(session, options);
  }

  async run(): Promise<void> {
    const { signal } = this.#options;
    // One signal serves all connections of a sandbox.
    setMaxListeners(0, signal);
    const stop = (): void => {
      this.#exchanges.close();
      this.#client.destroy();
    };
    // Without one an error of the client's connection would end the process.
    this.#client.on('error', stop);
    this.#client.on('close', stop);
    signal.addEventListener('abort', stop, { once: true });
    try {
      if (!signal.aborted) await this.#serve();
    } finally {
      signal.removeEventListener('abort', stop);
      this.#client.off('close', stop);
      this.#exchanges.close();
    }
  }

  async #serve(): Promise<void> {
    const { headMs } = this.#options.limits ?? usualLimits;
    for (;;) {
      const answer = new ClientAnswer(this.#client, this.#reader);
      let head: RequestHead | undefined;
      try {
        head = await readRequestHead(this.#reader, headMs);
        if (head === undefined) return await answer.close();
        answer.asked(head);
        if (head.method === 'CONNECT') return await this.#connect(head);
        const end = await this.#exchanges.perform(this.#understand(head), answer);
        if (end === 'over' || answer.isLast) return await answer.close();
      } catch (error) {
        // After a head that was not understood nobody knows where the next one begins.
        await this.#refuse(head, answer, error);
        return await answer.close();
      }
    }
  }

  #understand(head: RequestHead): ClientRequest {
    const { baseUrl, authority } = this.#options;
    const scheme = baseUrl === undefined ? this.#options.scheme : 'https';
    const framing = requestFraming(head);
    const { destination, path } =
      baseUrl === undefined ? readTarget(head, scheme, authority) : ownTarget(head, baseUrl);
    const webSocketKey = readUpgrade(head);
    refuseStrangeConnection(head);
    return {
      method: head.method,
      path,
      scheme,
      destination,
      headers: endToEnd(head.headers),
      authority: writeAuthority(destination, defaultPorts[scheme]),
      framing,
      body: readBody(this.#reader, framing, 'bad_request'),
      ...(webSocketKey === undefined ? {} : { webSocketKey }),
    };
  }

  async #connect(head: RequestHead): Promise<void> {
    const { onConnect, authority, baseUrl } = this.#options;
    if (onConnect === undefined || authority !== undefined || baseUrl !== undefined) {
      throw new HttpViolation('connect_refused', 'there is no tunnel within a tunnel');
    }
    const target = readAuthority(head.target);
    // Python before 3.12 sends none here, and the target says it all. One that is there must say the same.
    const hosts = head.headers.all('host').map((text) => readAuthority(text, target.port));
    if (hosts.length > 1) throw new HttpViolation('host_repeated', 'the request has more than one Host');
    if (!hosts.every((host) => sameDestination(host, target))) {
      throw new HttpViolation('host_mismatch', 'Host and the target of CONNECT differ');
    }
    if (requestFraming(head).kind !== 'none') throw new HttpViolation('bad_request', 'CONNECT has no body');
    try {
      await onConnect(target, this.#client, this.#reader.release());
    } catch {
      // Words of HTTP have no place in what may be a tunnel by now. Whoever took it over has reported what happened.
      this.#client.destroy();
    }
  }

  async #refuse(head: RequestHead | undefined, answer: ClientAnswer, error: unknown): Promise<void> {
    if (this.#client.destroyed || answer.begun) return;
    const refusal = refusalOfError(error);
    const destination = this.#options.authority ?? this.#options.baseUrl ?? hostIfReadable(head);
    if (destination !== undefined) this.#report(destination, refusal);
    await answer.refuse(refusal, destination).catch(() => {});
  }

  #report(destination: Destination, { code, message: reason, advice, status }: Refusal): void {
    const { entrance, scheme } = this.#options;
    const attempt: Attempt = { entrance, destination, scheme };
    const decision = { allowed: false, attempt, code, reason, advice } as const;
    this.#session.report({ decision, bytesOut: 0, bytesIn: 0, durationMs: 0, status, error: code });
  }
}

/** Whatever name the listener is called by, it is this machine's: nothing else gets its requests to the service. */
function ownTarget(head: RequestHead, destination: Destination): { destination: Destination; path: string } {
  const { host } = hostOf(head, defaultPorts.http);
  const isHere = host === 'localhost' || host.startsWith('127.') || host === '::1';
  if (!isHere) throw new HttpViolation('host_mismatch', 'Host is not that of this listener');
  if (!head.target.startsWith('/')) throw new HttpViolation('target_refused', 'the target is no path');
  return { destination, path: head.target };
}

/** The key of a WebSocket, if one is asked for. Every other change of protocol would leave the gate without a word. */
function readUpgrade({ method, version, headers }: RequestHead): string | undefined {
  if (headers.has('http2-settings')) throw noUpgrade();
  const wanted = headers.tokens('upgrade');
  if (wanted.length === 0) return undefined;
  const key = headers.get('sec-websocket-key');
  const asked = headers.tokens('connection').includes('upgrade') && method === 'GET' && version === '1.1';
  if (wanted.length > 1 || wanted[0] !== 'websocket' || !asked || key === undefined) throw noUpgrade();
  if (headers.all('sec-websocket-key').length > 1) throw noUpgrade();
  return key;
}

const noUpgrade = (): HttpViolation =>
  new HttpViolation('upgrade_refused', 'no change of protocol but to a WebSocket passes');

const neverPerHop = new Set(['host', 'content-length', 'content-type', 'authorization', 'cookie']);

/** `Connection: host` would have the gate drop what it judged by. */
function refuseStrangeConnection({ headers }: RequestHead): void {
  if (headers.tokens('connection').some((name) => neverPerHop.has(name))) {
    throw new HttpViolation('bad_request', 'Connection names a field that is not about the connection');
  }
}

function hostIfReadable(head: RequestHead | undefined): Destination | undefined {
  try {
    return head === undefined ? undefined : hostOf(head, defaultPorts.http);
  } catch {
    return undefined;
  }
}
