/** The gate of a daemon: gives each sandbox that asks for it a way out, and nothing to the others. */

import { parseUpstream } from '../policy/egress/upstream.ts';
import { SallyportError } from '../protocol/errors.ts';
import type { EgressSpec } from '../protocol/spec.ts';
import type { BoxGate, Gate, GateClient } from '../sandboxes/ports.ts';
import { BoxConnections } from './box-connections.ts';
import { type GateSecrets, requireSecrets } from './box-credentials.ts';
import { BoxEgress, type BoxEgressParts } from './box-egress.ts';
import { dnsResolver } from './resolver.ts';
import type { TorClient } from './tor/tor-client.ts';
import { requireLogin } from './upstream-proxy.ts';

export interface GateOptions {
  /** Instead of the resolvers of this machine: `address` or `address:port`. */
  readonly dnsServers?: readonly string[];
  /** Absent: TLS is not opened, and there are no credentials. */
  readonly secrets?: GateSecrets;
  /** Absent: only a Tor client that runs already can be used. */
  readonly tor?: TorClient;
  /** Absent: connections are served by this thread. */
  readonly connections?: BoxEgressParts['connections'];
}

export class EgressGate implements Gate {
  readonly #resolver;
  readonly #secrets: GateSecrets | undefined;
  readonly #tor: TorClient | undefined;
  readonly #connections: BoxEgressParts['connections'];

  constructor(options: GateOptions = {}) {
    this.#resolver = dnsResolver(options.dnsServers);
    this.#secrets = options.secrets;
    this.#tor = options.tor;
    this.#connections = options.connections ?? ((parts) => new BoxConnections(parts));
  }

  check({ credentials = [], upstream: way, upstream_secret }: EgressSpec): void {
    const upstream = parseUpstream(way);
    if (upstream.kind === 'tor') this.#tor?.requireProgram();
    requireLogin({ upstream, login: upstream_secret, secrets: this.#secrets?.source });
    if (credentials.length === 0) return;
    if (this.#secrets !== undefined) {
      requireSecrets(credentials, this.#secrets.source);
      return;
    }
    throw new SallyportError('refused_by_policy', 'egress.credentials: the gate has no secrets to put in', {
      details: { field: 'egress.credentials' },
      advice: 'Leave egress.credentials out.',
    });
  }

  open(client: GateClient): BoxGate {
    const resolver = this.#resolver.remembering();
    return new BoxEgress(client, {
      resolver,
      secrets: this.#secrets,
      tor: this.#tor,
      connections: this.#connections,
    });
  }
}
