/** Everything of the gate for one sandbox: its session, its two entrances, its account. */

import { posix } from 'node:path';
import type { Duplex } from 'node:stream';
import { ruleText } from '../policy/egress/rule.ts';
import { parseUpstream } from '../policy/egress/upstream.ts';
import type { Porter } from '../porter/porter.ts';
import { SallyportError } from '../protocol/errors.ts';
import type { EgressLineView, NetView, VerifyCheck } from '../protocol/views.ts';
import type { BoxGate, GateClient } from '../sandboxes/ports.ts';
import {
  type ConnectionAt,
  type ConnectionParts,
  type ConnectionServer,
  policyOf,
  sessionOf,
} from './box-connections.ts';
import { BoxCredentials, type GateSecrets } from './box-credentials.ts';
import type { UpstreamProxy } from './dial.ts';
import { EgressAccount } from './egress-account.ts';
import { EntranceBudget } from './entrance-budget.ts';
import { probeEntrance, probeOutside } from './preflight.ts';
import { RareNotes } from './rare-notes.ts';
import type { NameResolver } from './resolver.ts';
import type { GateSession } from './session.ts';
import { putSshConfig } from './ssh-config.ts';
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
  /** Here, or in a thread of its own. */
  readonly connections: (parts: ConnectionParts, box: ServedBox) => ConnectionServer;
}

/** What another thread needs to serve the connections of a sandbox as this one would. */
export interface ServedBox {
  readonly client: GateClient;
  readonly keys: ReturnType<BoxCredentials['keys']> | undefined;
  readonly tor: () => TorLease | undefined;
}

/** A sandbox waits so long for Tor's first circuit before it is given up. */
const torStartMs = 180_000;

export class BoxEgress implements BoxGate {
  readonly #client: GateClient;
  readonly #account: EgressAccount;
  readonly #session: GateSession;
  readonly #transparent: TransparentEntrance;
  readonly #credentials: BoxCredentials | undefined;
  readonly #entrances: EntranceBudget;
  readonly #served: ConnectionServer;
  #connections = 0;
  readonly #proxy: ((signal: AbortSignal) => Promise<UpstreamProxy>) | undefined;
  readonly #tor: TorClient | undefined;
  #torLease: TorLease | undefined;

  constructor(client: GateClient, { resolver, secrets, tor, connections }: BoxEgressParts) {
    this.#client = client;
    this.#account = new EgressAccount(client);
    const notes = new RareNotes((code, message) => client.tell({ type: 'sandbox.note', code, message }));
    this.#entrances = new EntranceBudget(notes);
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
    const parts: ConnectionParts = {
      sandbox: client.name,
      egress,
      credentials: this.#credentials,
      resolver,
      proxy: this.#proxy,
      written: (outcome) => this.#account.written(outcome),
      note: (code, message) => client.tell({ type: 'sandbox.note', code, message }),
      report: client.report,
    };
    this.#session = sessionOf(parts);
    const keys = this.#credentials?.keys();
    this.#served = connections(parts, { client, keys, tor: () => this.#torLease });
    this.#transparent = new TransparentEntrance({
      session: this.#session,
      names: new SyntheticNames(client.names),
      serve: (tunnel, host, port) => this.#serve(tunnel, { at: 'name', host, port }),
      budget: this.#entrances,
      note: (code, message) => notes.note(code, message),
      report: client.report,
    });
  }

  async connected(porter: Porter): Promise<void> {
    this.#served.closeAll();
    this.#torLease ??= this.#tor?.lease(this.#torUser());
    const known = await porter.listeners();
    const listen = async (port: number, where: ConnectionAt): Promise<void> => {
      const take = (tunnel: Duplex): void => this.#serve(tunnel, where);
      const { host } = proxyPlace;
      const there = known.find((each) => each.kind === 'tcp' && each.address === host && each.port === port);
      if (there === undefined) await porter.listen({ host, port }, take);
      else porter.resumeListener(there, take);
    };
    await listen(proxyPlace.port, { at: 'proxy' });
    for (const [at, { destination }] of this.#baseUrls().entries()) {
      await listen(firstBaseUrlPort + at, { at: 'base-url', destination });
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
    return await this.#served.probing((name) => probeEntrance(porter, proxyPlace, name));
  }

  async changed(): Promise<number> {
    const egress = this.#client.egress();
    // Names first: what is not allowed any more gets no address from here on.
    const closed = this.#session.change(policyOf(egress, this.#credentials));
    return closed + (await this.#served.change(egress));
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
    this.#served.closeAll();
    this.#torLease?.release();
    this.#torLease = undefined;
    this.#transparent.close();
    this.#session.closeAll();
  }

  forget(): void {
    this.#credentials?.close();
    this.#served.end();
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

  #baseUrls(): ReturnType<BoxCredentials['credentials']['baseUrls']> {
    return this.#credentials?.credentials.baseUrls() ?? [];
  }

  #serve(tunnel: Duplex, where: ConnectionAt): void {
    if (this.#connections >= mostConnections || !this.#entrances.connection()) {
      tunnel.destroy();
      return;
    }
    this.#connections++;
    const over = (): void => {
      this.#connections--;
    };
    tunnel.once('close', over);
    this.#served.serve(tunnel, where);
  }
}
