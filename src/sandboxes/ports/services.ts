/** What services need of an engine, beyond what every box needs. */

import type { BoxNetwork, ServiceRequest } from '../../protocol/box.ts';
import type { KnownBox } from '../ports.ts';

/** What an image says of itself. */
export interface ServiceImage {
  /** As it is written there; empty: root. */
  readonly user: string;
  /** The command of its own health check. */
  readonly check?: readonly string[];
}

export interface NetworkRequest {
  readonly name: string;
  /** In the way of 198.18.0.0/28. */
  readonly subnet: string;
  readonly labels: Readonly<Record<string, string>>;
}

export interface KnownNetwork {
  readonly id: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
}

export interface CheckResult {
  readonly passed: boolean;
  /** The last of what it printed, or why it could not be run. */
  readonly output: string;
}

export interface ServiceEngine {
  image(reference: string, signal?: AbortSignal): Promise<ServiceImage>;
  /** One that leads nowhere: no host on it, no name server that asks others. */
  createNetwork(request: NetworkRequest): Promise<string>;
  /** All of this owner. */
  networks(owner: string): Promise<readonly KnownNetwork[]>;
  /** The subnets of all networks of the engine, whoever they belong to. */
  takenSubnets(): Promise<readonly string[]>;
  /** Idempotent. Nothing may be on it that runs. */
  removeNetwork(id: string): Promise<void>;
  /** For a container that was made on a network that is gone and made anew. It must not run. */
  reconnect(network: BoxNetwork, boxId: string): Promise<void>;
  create(request: ServiceRequest, note?: (reason: string) => void): Promise<string>;
  /** All containers of services of this owner, running or not. */
  list(owner: string): Promise<readonly KnownBox[]>;
  /** Runs a command in it. One that takes longer than it may has failed. */
  check(
    id: string,
    argv: readonly string[],
    options: { readonly timeoutMs: number; readonly signal?: AbortSignal },
  ): Promise<CheckResult>;
  /** What it has printed, and with `follow` what comes, both streams in the order of their arrival. */
  logs(
    id: string,
    options: { readonly tail?: number; readonly follow?: boolean; readonly signal?: AbortSignal },
  ): AsyncIterable<Buffer>;
}
