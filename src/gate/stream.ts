/**
 * A connection out of a sandbox whose destination is known and whose content is not: by CONNECT, by SOCKS, or at an address
 * that stands for a name. What it is shows in its first bytes: TLS must be for the same name, HTTP is judged request by request,
 * and anything else passes only where a rule says `tcp`.
 */

import type { Duplex } from 'node:stream';
import { isSallyportError } from '../protocol/errors.ts';
import type {
  Allowed,
  Attempt,
  Decision,
  Denied,
  Destination,
  EgressSession,
  Entrance,
  Outcome,
} from './contract.ts';
import { type FirstBytes, readFirstBytes, serverSpeaksFirst } from './first-bytes.ts';
import { type RelayOptions, relayHttp } from './http/relay.ts';
import { deniedBy } from './session.ts';
import { type Counts, splice, withFirstBytes } from './splice.ts';
import { type ClientHello, serverNameProblem } from './tls/client-hello.ts';

/** Opens TLS and judges what is inside. Absent: what would need it is denied. */
export type InterceptTls = (
  client: Duplex,
  hello: ClientHello,
  options: { readonly decision: Allowed; readonly authority: Destination; readonly signal: AbortSignal },
) => Promise<void>;

export interface StreamParts {
  readonly session: EgressSession;
  readonly intercept?: InterceptTls;
  /** What plain HTTP is relayed with besides. */
  readonly relay: Pick<RelayOptions, 'credentials' | 'upstreamTls' | 'pool' | 'budget'>;
  readonly signal: AbortSignal;
}

/** How the entrance tells the client inside whether it may go on. */
export interface Greeting {
  readonly entrance: Entrance;
  readonly destination: Destination;
  accept(): void;
  refuse(denied: Denied | { readonly failed: string }): void;
}

const sniffedPorts: readonly number[] = [80, 443];
/** Of TLS: fatal, unrecognized_name. */
const wrongNameAlert = Buffer.from([21, 3, 3, 0, 2, 2, 112]);

export async function serveStream(client: Duplex, greeting: Greeting, parts: StreamParts): Promise<void> {
  await new StreamService(client, greeting, parts).run();
}

class StreamService {
  readonly #client: Duplex;
  readonly #greeting: Greeting;
  readonly #parts: StreamParts;
  readonly #began = performance.now();
  readonly #counts: Counts = { bytesOut: 0, bytesIn: 0 };

  constructor(client: Duplex, greeting: Greeting, parts: StreamParts) {
    this.#client = client;
    this.#greeting = greeting;
    this.#parts = parts;
  }

  async run(): Promise<void> {
    const { session } = this.#parts;
    const opaque = session.decide(this.#attempt('tcp'));
    if (opaque.allowed && !opaque.inspect && !this.#isWorthALook(opaque)) {
      const server = await this.#dial(opaque);
      if (server === undefined) return;
      this.#greeting.accept();
      await this.#join(server, Buffer.alloc(0), opaque);
      return;
    }
    const decision = session.decide(this.#attempt('https'));
    if (!decision.allowed) {
      this.#refuse(this.#nearest(decision, opaque));
      return;
    }
    if (decision.inspect) await this.#inspected(decision, opaque);
    else await this.#looked(decision, opaque);
  }

  /** In an open mode everything is allowed, and yet a denied host must not be reached under another name. */
  #isWorthALook({ rule }: Allowed): boolean {
    return rule.startsWith('egress.mode') && sniffedPorts.includes(this.#greeting.destination.port);
  }

  /** A rule for this port that wants `tcp` says more than that HTTP is not allowed. */
  #nearest(https: Denied, tcp: Decision): Denied {
    return !tcp.allowed && tcp.code === 'denied_by_rule' ? tcp : https;
  }

  async #looked(decision: Allowed, opaque: Decision): Promise<void> {
    // Before the client is told: what cannot be reached, or must not be after its name was resolved, is told in its own words.
    const server = await this.#dial(decision);
    if (server === undefined) return;
    this.#greeting.accept();
    const first = await this.#first();
    if (first?.kind === 'other' && opaque.allowed) {
      await this.#join(server, first.bytes, opaque);
      return;
    }
    const problem = first?.kind === 'tls' ? this.#nameProblem(first.hello) : undefined;
    if (first?.kind === 'tls' && problem === undefined) {
      await this.#join(server, first.hello.bytes, decision);
      return;
    }
    server.destroy();
    if (problem !== undefined) this.#drop(problem, wrongNameAlert);
    else if (first?.kind === 'http') await this.#relay(first.bytes);
    else if (first?.kind === 'other' && !opaque.allowed) this.#drop(opaque);
  }

  /**
   * SECURITY: where any bytes may pass and a secret is bound to the host, TLS and HTTP are opened all the same. Of other bytes nobody
   * knows the form, so a value within them is not masked.
   */
  async #inspected(decision: Allowed, opaque: Decision): Promise<void> {
    let server: Duplex | undefined;
    if (opaque.allowed && !this.#isWorthALook(opaque)) {
      server = await this.#dial(opaque);
      if (server === undefined) return;
    }
    this.#greeting.accept();
    if (server !== undefined && opaque.allowed && (await serverSpeaksFirst(server, this.#client))) {
      await this.#join(server, Buffer.alloc(0), opaque);
      return;
    }
    const first = await this.#first();
    if (first?.kind === 'other' && opaque.allowed) {
      server ??= await this.#dial(opaque, () => this.#client.destroy());
      if (server !== undefined) await this.#join(server, first.bytes, opaque);
      return;
    }
    server?.destroy();
    if (first?.kind === 'tls') await this.#open(first.hello, decision);
    else if (first?.kind === 'http') await this.#relay(first.bytes);
    else if (first?.kind === 'other' && !opaque.allowed) this.#drop(opaque);
  }

  async #open(hello: ClientHello, decision: Allowed): Promise<void> {
    const problem = this.#nameProblem(hello);
    const { intercept, signal } = this.#parts;
    if (problem !== undefined) this.#drop(problem, wrongNameAlert);
    else if (intercept === undefined) {
      const reason = 'its rule goes by requests, or a secret is bound to it, and TLS is not opened here';
      this.#drop(
        this.#denial('https', 'not_inspectable', reason, 'Use a rule without methods and paths.'),
        wrongNameAlert,
      );
    } else {
      await intercept(this.#client, hello, { decision, authority: this.#greeting.destination, signal });
    }
  }

  async #relay(first: Buffer): Promise<void> {
    const { entrance, destination } = this.#greeting;
    const { session, signal, relay } = this.#parts;
    const client = withFirstBytes(this.#client, first);
    await relayHttp(client, session, {
      ...relay,
      entrance,
      scheme: 'http',
      authority: destination,
      signal,
    });
  }

  /** Undefined: nothing was understood and never will be, and the client was dropped for it. */
  async #first(): Promise<FirstBytes | undefined> {
    try {
      return await readFirstBytes(this.#client);
    } catch (error) {
      const opaque = this.#parts.session.decide(this.#attempt('tcp'));
      const why = error instanceof Error ? error.message : String(error);
      const advice = 'A rule with /tcp passes what is neither HTTP nor TLS.';
      this.#drop(opaque.allowed ? this.#denial('tcp', 'tls_invalid', why, advice) : opaque);
      return undefined;
    }
  }

  #nameProblem(hello: ClientHello): Denied | undefined {
    const problem = serverNameProblem(hello, this.#greeting.destination);
    if (problem === undefined) return undefined;
    const advice = 'Name the same host in TLS (SNI) and in the connection.';
    return this.#denial('https', problem.code, problem.reason, advice);
  }

  async #dial(
    decision: Allowed,
    refuse: Greeting['refuse'] = (why) => this.#greeting.refuse(why),
  ): Promise<Duplex | undefined> {
    const { session, signal } = this.#parts;
    try {
      const server = await session.dial(decision, signal);
      if (!this.#client.destroyed) return server;
      server.destroy();
      this.#report({ decision, error: 'the client left' });
    } catch (error) {
      const failed = isSallyportError(error) ? error : undefined;
      const isDenied = failed?.code === 'egress_denied';
      this.#report({ decision, error: failed?.message ?? String(error) });
      refuse(
        failed !== undefined && isDenied
          ? deniedBy(decision.attempt, failed)
          : { failed: failed?.message ?? 'the connection could not be made' },
      );
    }
    return undefined;
  }

  async #join(server: Duplex, first: Buffer, decision: Allowed): Promise<void> {
    await splice(this.#client, server, first, this.#counts);
    this.#report({ decision });
  }

  #attempt(scheme: Attempt['scheme']): Attempt {
    const { entrance, destination } = this.#greeting;
    return { entrance, destination, scheme };
  }

  #denial(scheme: Attempt['scheme'], code: string, reason: string, advice: string): Denied {
    return { allowed: false, attempt: this.#attempt(scheme), code, reason, advice };
  }

  /** Before the client was told anything. */
  #refuse(denied: Denied): void {
    this.#report({ decision: denied });
    this.#greeting.refuse(denied);
  }

  /** When it is too late for words. */
  #drop(denied: Denied, last: Buffer = Buffer.alloc(0)): void {
    this.#report({ decision: denied });
    if (last.length > 0) this.#client.end(last, () => this.#client.destroy());
    else this.#client.destroy();
  }

  #report(more: Pick<Outcome, 'decision'> & { readonly error?: string }): void {
    this.#parts.session.report({ ...this.#counts, durationMs: performance.now() - this.#began, ...more });
  }
}
