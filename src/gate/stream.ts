/**
 * A connection out of a sandbox whose destination is known and whose content is not: by CONNECT, by SOCKS, or at an address
 * that stands for a name. What it is shows in its first bytes: TLS must be for the same name, HTTP is judged request by request,
 * and anything else passes only where a rule says `tcp`.
 */

import type { Duplex } from 'node:stream';
import { isSallyportError } from '../protocol/errors.ts';
import type { Allowed, Attempt, Denied, Destination, EgressSession, Entrance, Outcome } from './contract.ts';
import { type RelayOptions, relayHttp } from './http/relay.ts';
import { deniedBy } from './session.ts';
import { type Counts, splice, withFirstBytes } from './splice.ts';
import { type ClientHello, readClientHello, serverNameProblem } from './tls/client-hello.ts';

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

/** A server that speaks first makes its client wait: without a `tcp` rule that ends here. */
const firstBytesMs = 10_000;
const mostHelloBytes = 64 * 1024;
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
    if (opaque.allowed && !this.#isWorthALook(opaque)) {
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
    if (decision.inspect) await this.#inspected(decision);
    else await this.#looked(decision, opaque.allowed ? opaque : undefined);
  }

  /** In an open mode everything is allowed, and yet a denied host must not be reached under another name. */
  #isWorthALook({ rule }: Allowed): boolean {
    return rule.startsWith('egress.mode') && sniffedPorts.includes(this.#greeting.destination.port);
  }

  /** A rule for this port that wants `tcp` says more than that HTTP is not allowed. */
  #nearest(https: Denied, tcp: Allowed | Denied): Denied {
    return !tcp.allowed && tcp.code === 'denied_by_rule' ? tcp : https;
  }

  async #looked(decision: Allowed, opaque: Allowed | undefined): Promise<void> {
    // Before the client is told: what cannot be reached, or must not be after its name was resolved, is told in its own words.
    const server = await this.#dial(decision);
    if (server === undefined) return;
    this.#greeting.accept();
    const hello = await this.#hello();
    if (hello === undefined) {
      server.destroy();
      return;
    }
    if ('notTls' in hello) {
      if (opaque !== undefined && !isHttp(hello.notTls)) {
        await this.#join(server, hello.notTls, opaque);
        return;
      }
      server.destroy();
      await this.#notTls(hello.notTls);
      return;
    }
    const problem = this.#nameProblem(hello);
    if (problem === undefined) await this.#join(server, hello.bytes, decision);
    else {
      server.destroy();
      this.#drop(problem, wrongNameAlert);
    }
  }

  async #inspected(decision: Allowed): Promise<void> {
    this.#greeting.accept();
    const hello = await this.#hello();
    if (hello === undefined) return;
    if ('notTls' in hello) {
      await this.#notTls(hello.notTls);
      return;
    }
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

  async #notTls(first: Buffer): Promise<void> {
    const { entrance, destination } = this.#greeting;
    if (isHttp(first)) {
      const { session, signal, relay } = this.#parts;
      const client = withFirstBytes(this.#client, first);
      await relayHttp(client, session, {
        ...relay,
        entrance,
        scheme: 'http',
        authority: destination,
        signal,
      });
      return;
    }
    const opaque = this.#parts.session.decide(this.#attempt('tcp'));
    if (opaque.allowed) this.#client.destroy();
    else this.#drop(opaque);
  }

  /** Undefined: it is no greeting and never will be, and the client was dropped for it. */
  async #hello(): Promise<Awaited<ReturnType<typeof readClientHello>> | undefined> {
    try {
      return await readClientHello(this.#client, { timeoutMs: firstBytesMs, maxBytes: mostHelloBytes });
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

  async #dial(decision: Allowed): Promise<Duplex | undefined> {
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
      this.#greeting.refuse(
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

/** A method, as far as it is there. */
/** A method and its space, or as much of it as came first: `SSH-2.0` is none, and must not be waited for as the head of a request. */
const isHttp = (bytes: Buffer): boolean =>
  /^[A-Z]{3,10}(?: |$)/.test(bytes.subarray(0, 11).toString('latin1'));
