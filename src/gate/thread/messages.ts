/** What the gate's two halves say to each other: the daemon's thread, which has the sandboxes, and the thread that serves their connections. */

import type { ErrorCode, ErrorDetails } from '../../protocol/errors.ts';
import type { SandboxId } from '../../protocol/ids.ts';
import type { EgressSpec } from '../../protocol/spec.ts';
import type { ConnectionAt } from '../box-connections.ts';
import type { Outcome } from '../contract.ts';
import type { KnownValue } from '../credentials/known-values.ts';
import type { StoredAuthority } from '../tls/sandbox-authority.ts';
import type { TorPlace } from '../tor/tor-client.ts';
import type { StreamMessage } from './thread-stream.ts';

/** A sandbox, with all that a thread that was just started needs to know of it. */
export interface OpenedBox {
  readonly box: number;
  readonly id: SandboxId;
  readonly name: string;
  readonly egress: EgressSpec;
  readonly keys:
    | { readonly authority: StoredAuthority; readonly phantoms: Record<string, string> }
    | undefined;
}

export type ToThread =
  /** What a thread before this one knew. */
  | { readonly kind: 'value'; readonly known: KnownValue }
  | { readonly kind: 'box'; readonly opened: OpenedBox }
  | { readonly kind: 'end'; readonly box: number }
  | { readonly kind: 'close-all'; readonly box: number }
  | { readonly kind: 'probe'; readonly box: number; readonly call: number; readonly name?: string }
  | { readonly kind: 'change'; readonly box: number; readonly call: number; readonly egress: EgressSpec }
  | {
      readonly kind: 'connection';
      readonly box: number;
      readonly stream: number;
      readonly where: ConnectionAt;
    }
  | { readonly kind: 'stream'; readonly stream: number; readonly message: StreamMessage }
  | { readonly kind: 'tor'; readonly call: number; readonly place: TorPlace | WireError };

export type FromThread =
  | { readonly kind: 'value'; readonly known: KnownValue }
  | { readonly kind: 'stream'; readonly stream: number; readonly message: StreamMessage }
  | { readonly kind: 'answer'; readonly call: number; readonly closed: number }
  | { readonly kind: 'written'; readonly box: number; readonly outcome: Outcome }
  | { readonly kind: 'note'; readonly box: number; readonly code: string; readonly message: string }
  | { readonly kind: 'report'; readonly box: number; readonly what: string; readonly error: string }
  | { readonly kind: 'tor'; readonly box: number; readonly call: number; readonly withinMs: number };

export interface WireError {
  readonly error: {
    readonly code: ErrorCode;
    readonly message: string;
    readonly advice: string;
    readonly details: ErrorDetails;
  };
}
