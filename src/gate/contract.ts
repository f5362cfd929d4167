/**
 * What the parts of the gate agree on. One attempt is made once, from a strict reading of what came out of the sandbox, and
 * the same object is judged, written down, dialled and given its credentials. Nothing later reads the name a second time.
 */

import type { Duplex } from 'node:stream';

/** Canonical: lower case, no trailing dot, ASCII; an address literal in its one written form. */
export interface Destination {
  readonly host: string;
  readonly port: number;
  readonly isAddress: boolean;
}

export type Entrance = 'connect' | 'http' | 'socks' | 'transparent' | 'base-url';

export interface Attempt {
  readonly entrance: Entrance;
  readonly destination: Destination;
  /** `tcp`: bytes that nobody looks into. */
  readonly scheme: 'tcp' | 'http' | 'https';
  /** Where HTTP is seen. The path is the request's own, with its query. */
  readonly method?: string;
  readonly path?: string;
}

export interface Allowed {
  readonly allowed: true;
  readonly attempt: Attempt;
  /** The rule that let it through, as a person wrote it. */
  readonly rule: string;
  /** Methods, paths or credentials are at stake: TLS has to be opened to judge them, and bytes are looked at before they pass as `tcp`. */
  readonly inspect: boolean;
  /** A rule for this destination goes by the method or the path. */
  readonly byRequest?: boolean;
}

export interface Denied {
  readonly allowed: false;
  readonly attempt: Attempt;
  /** A stable word, such as `not_allowed`, `denied_by_rule`, `private_address`, `host_mismatch`. */
  readonly code: string;
  readonly reason: string;
  /** The command that would allow it, or why nothing would. */
  readonly advice: string;
}

export type Decision = Allowed | Denied;

export interface Outcome {
  readonly decision: Decision;
  readonly bytesOut: number;
  readonly bytesIn: number;
  readonly durationMs: number;
  readonly status?: number;
  readonly error?: string;
}

/** The gate as one sandbox has it. */
export interface EgressSession {
  readonly sandbox: string;
  decide(attempt: Attempt): Decision;
  /** Resolves once, judges the address, connects to that very address. A denial after resolution rejects with `egress_denied`. */
  dial(decision: Allowed, signal: AbortSignal): Promise<Duplex>;
  report(outcome: Outcome): void;
}
