/** Everything of the gate for one sandbox: its session, its two entrances, its account. */

import { setMaxListeners } from 'node:events';
import { posix } from 'node:path';
import type { Duplex } from 'node:stream';
import { type EgressPolicy, parsePolicy } from '../policy/egress/policy.ts';
import { ruleText } from '../policy/egress/rule.ts';
import { parseUpstream } from '../policy/egress/upstream.ts';
import type { Porter } from '../porter/porter.ts';
import { SallyportError } from '../protocol/errors.ts';
import type { EgressSpec } from '../protocol/spec.ts';
import type { EgressLineView, NetView, VerifyCheck } from '../protocol/views.ts';
import type { BoxGate, GateClient } from '../sandboxes/ports.ts';
import { BoxCredentials, type GateSecrets } from './box-credentials.ts';
import type { UpstreamProxy } from './dial.ts';
import { EgressAccount } from './egress-account.ts';
import { relayHttp } from './http/relay.ts';
import { UpstreamPool } from './http/upstream-pool.ts';
import { ProbedSession, probeEntrance, probeOutside } from './preflight.ts';
import { serveProxy } from './proxy.ts';
import type { NameResolver } from './resolver.ts';
import { GateSession } from './session.ts';
import { putSshConfig } from './ssh-config.ts';
import { type StreamParts, serveStream } from './stream.ts';
import { SyntheticNames } from './synthetic-names.ts';
import { readImageRoots } from './tls/image-roots.ts';
import type { TorClient, TorLease, TorUser } from './tor/tor-client.ts';
import { TransparentEntrance } from './transparent.ts';
import { findProxy } from './upstream-proxy.ts';

/** Where the proxy is inside. `policy/egress/client-environment.ts` tells programs. */
export const proxyPlace = { host: '127.0.0.1', port: 3128 } as const;

/** Listeners that stand for a service come behind it, in the order of the secrets. */
const firstBaseUrlPort = proxyPlace.port + 1;

/** Programs inside may hold so many connections at once; porter has a bound of its own above it. */
const mostConnections = 512;

export interface BoxEgressParts {
  readonly resolver: NameResolver;
  readonly secrets: GateSecrets | undefined;
  readonly tor: TorClient | undefined;
}

/** A sandbox waits so long for Tor's first circuit before it is given up. */
const torStartMs = 180_000;

export class BoxEgress implements BoxGate {
  readonly #client: GateClient;
  readonly #account: EgressAccount;
  readonly #session: GateSession;
  readonly #transparent: TransparentEntrance;
  readonly #credentials: BoxCredentials | undefined;
  #life = new AbortController();
  #pool = new UpstreamPool();
  #connections = 0;
  /** While we ask, and not a program. */
  #probed: ProbedSession | undefined;
  readonly #proxy: ((signal: AbortSignal) => Promise<UpstreamProxy>) | undefined;
  readonly #tor: TorClient | undefined;
  #torLease: TorLease | undefined;

  constructor(client: GateClient, { resolver, secrets, tor }: BoxEgressParts) {
    this.#client = client;
    this.#account = new EgressAccount(client);
    const egress = client.egress();
    this.#credentials =
      secrets === undefined ? undefined : new BoxCredentials(client.id, egress.credentials ?? [], secrets);
    const upstream = parseUpstream(egress.upstream);
    this.#tor = upstream.kind === 'tor' ? tor : undefined;
    this.#proxy = findProxy({
      upstream,
      login: egress.upstream_secret,
      secrets: secrets?.source,
      tor: () => this.#torLease,
      sandbox: client.id,
    });
    this.#session = new GateSession({
      sandbox: client.name,
      policy: this.#policyOf(egress),
      proxy: this.#proxy,
      resolver,
      needsInspection: (destination) => this.#credentials?.needsInspection(destination) === true,
      written: (outcome) => this.#account.written(outcome),
    });
    this.#transparent = new TransparentEntrance({
      session: this.#session,
      names: new SyntheticNames(client.names),
      serve: (tunnel, name, port) => this.#serve(tunnel, (parts) => serveNamed(tunnel, name, port, parts)),
      note: (code, message) => client.tell({ type: 'sandbox.note', code, message }),
      report: client.report,
    });
  }

  async connected(porter: Porter): Promise<void> {
    this.#life.abort();
    this.#life = new AbortController();
    this.#pool.close();
    this.#pool = new UpstreamPool();
    // Every connection listens to it.
    setMaxListeners(0, this.#life.signal);
    this.#torLease ??= this.#tor?.lease(this.#torUser());
    const known = await porter.listeners();
    const listen = async (port: number, work: (tunnel: Duplex, parts: StreamParts) => Promise<void>) => {
      const take = (tunnel: Duplex): void => this.#serve(tunnel, (parts) => work(tunnel, parts));
      const { host } = proxyPlace;
      const there = known.find((each) => each.kind === 'tcp' && each.address === host && each.port === port);
      if (there === undefined) await porter.listen({ host, port }, take);
      else porter.resumeListener(there, take);
    };
    await listen(proxyPlace.port, serveProxy);
    for (const [at, { destination }] of this.#baseUrls().entries()) {
      await listen(firstBaseUrlPort + at, (tunnel, { session, signal, relay }) =>
        relayHttp(tunnel, session, {
          entrance: 'base-url',
          scheme: 'https',
          baseUrl: destination,
          ...relay,
          signal,
        }),
      );
    }
    await this.#transparent.connected(porter, known);
  }

  async prepare(
    porter: Porter,
    folder: string,
    signal?: AbortSignal,
  ): Promise<Readonly<Record<string, string>>> {
    await this.#torLease?.socks(torStartMs, signal);
    await porter.files.mkdir(folder, { parents: true });
    await putSshConfig(porter.files, posix.dirname(folder), folder);
    const credentials = this.#credentials;
    if (credentials === undefined) return {};
    const { files, env } = credentials.trust(await readImageRoots(porter.files), folder);
    const folders = new Set(files.map(({ path }) => posix.dirname(path)));
    await Promise.all([...folders].map((each) => porter.files.mkdir(each, { parents: true })));
    await Promise.all(
      files.map(({ path, content }) =>
        porter.files.write(path, typeof content === 'string' ? Buffer.from(content) : content),
      ),
    );
    const ports = this.#baseUrls().map(({ secret }, at) => [secret, firstBaseUrlPort + at] as const);
    return { ...env, ...credentials.credentials.env(Object.fromEntries(ports)) };
  }

  async probe(porter: Porter): Promise<void> {
    const failed = (await this.#probeEntrance(porter)).filter(({ status }) => status === 'failed');
    if (failed.length === 0) return;
    const { name } = this.#client;
    const list = failed.map((check) => `${check.name}: ${check.found}, not ${check.expected}`);
    throw new SallyportError('isolation_missing', `at the gate of sandbox ${name} ${list.join('; ')}`, {
      details: { sandbox: name, checks: failed.map((check) => check.name) },
    });
  }

  async preflight(porter: Porter): Promise<readonly VerifyCheck[]> {
    const rows = await Promise.all([
      this.#probeEntrance(porter),
      probeOutside(this.#session, this.#session.policy.allow, this.#proxy),
      this.#credentials?.states() ?? [],
    ]);
    return rows.flat();
  }

  async #probeEntrance(porter: Porter): Promise<readonly VerifyCheck[]> {
    const probed = new ProbedSession(this.#session);
    this.#probed = probed;
    try {
      return await probeEntrance(porter, proxyPlace, probed);
    } finally {
      if (this.#probed === probed) this.#probed = undefined;
    }
  }

  changed(): number {
    return this.#session.change(this.#policyOf(this.#client.egress()));
  }

  view(): NetView {
    const { mode = 'deny', allow = [], deny = [], presets = [], upstream = 'direct' } = this.#client.egress();
    return {
      mode,
      allow: allow.map(ruleText),
      deny: deny.map(ruleText),
      presets: [...presets],
      upstream,
      open_connections: this.#connections,
      denied: [...this.#account.denied()],
      reached: [...this.#account.reached()],
    };
  }

  follow(options: { readonly follow: boolean; readonly signal: AbortSignal }): AsyncIterable<EgressLineView> {
    return this.#account.follow(options);
  }

  close(): void {
    this.#life.abort();
    this.#pool.close();
    this.#torLease?.release();
    this.#torLease = undefined;
    this.#transparent.close();
    this.#session.closeAll();
  }

  forget(): void {
    this.#credentials?.close();
  }

  #torUser(): TorUser {
    const { id, tell } = this.#client;
    return {
      sandbox: id,
      progress: ({ percent, summary }) =>
        tell({
          type: 'sandbox.progress',
          step: 'tor',
          message: `Tor: ${summary}`,
          current: percent,
          total: 100,
        }),
      ended: ({ message }) =>
        tell({ type: 'sandbox.note', code: 'tor_ended', message: `${message}; connections begin anew` }),
    };
  }

  /** Whoever gives a sandbox a secret wants it to reach the hosts that the secret is bound to. A deny still wins. */
  #policyOf(egress: EgressSpec): EgressPolicy {
    const hosts = this.#credentials?.credentials.destinations() ?? [];
    const allow = [...(egress.allow ?? []), ...hosts.map(({ host, port }) => `${host}:${port}`)];
    return parsePolicy(hosts.length === 0 ? egress : { ...egress, allow });
  }

  #baseUrls(): ReturnType<BoxCredentials['credentials']['baseUrls']> {
    return this.#credentials?.credentials.baseUrls() ?? [];
  }

  #streamParts(): StreamParts {
    const session = this.#probed ?? this.#session;
    const parts = { session, signal: this.#life.signal };
    const credentials = this.#credentials;
    const pool = this.#pool;
    if (credentials === undefined) return { ...parts, relay: { pool } };
    return {
      ...parts,
      relay: { ...credentials.relayParts(), pool },
      intercept: (client, hello, options) =>
        credentials.intercept(client, hello, session, { ...options, pool }),
    };
  }

  /** Nothing that a program inside sends may end the daemon: what fails ends its own connection. */
  #serve(tunnel: Duplex, work: (parts: StreamParts) => Promise<void>): void {
    if (this.#connections >= mostConnections) {
      tunnel.destroy();
      return;
    }
    this.#connections++;
    const over = (): void => {
      this.#connections--;
    };
    tunnel.once('close', over);
    tunnel.on('error', () => {});
    work(this.#streamParts()).catch((error: unknown) => {
      this.#client.report('serve a connection of a sandbox', error);
      tunnel.destroy();
    });
  }
}

async function serveNamed(client: Duplex, host: string, port: number, parts: StreamParts): Promise<void> {
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
