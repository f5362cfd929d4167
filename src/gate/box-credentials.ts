/**
 * What the gate has for one sandbox besides its rules: the CA and the credentials, made once and kept for the next daemon, and the
 * two things that need both: opening TLS, and telling programs inside what to trust and to use.
 */

import type { Duplex } from 'node:stream';
import { SallyportError } from '../protocol/errors.ts';
import type { SandboxId } from '../protocol/ids.ts';
import type { VerifyCheck } from '../protocol/views.ts';
import type { Allowed, Destination, EgressSession } from './contract.ts';
import type { KnownValues } from './credentials/known-values.ts';
import type { PhantomRegistry } from './credentials/phantoms.ts';
import { Credentials, type SecretSource } from './credentials.ts';
import type { UpstreamTls } from './http/upstream.ts';
import type { UpstreamPool } from './http/upstream-pool.ts';
import type { RequestBudget } from './request-budget.ts';
import type { ClientHello } from './tls/client-hello.ts';
import { interceptTls } from './tls/intercept.ts';
import { SandboxAuthority, type StoredAuthority } from './tls/sandbox-authority.ts';
import { type Trust, trustFiles } from './tls/trust-files.ts';

interface KeptKeys {
  readonly authority: StoredAuthority;
  readonly phantoms: Readonly<Record<string, string>>;
}

/** What all sandboxes of a daemon share. */
export interface GateSecrets {
  readonly source: SecretSource;
  readonly registry: PhantomRegistry;
  readonly values: KnownValues;
  readonly keys: {
    load(id: SandboxId): KeptKeys | undefined;
    save(id: SandboxId, keys: { authority: StoredAuthority; phantoms: Record<string, string> }): void;
  };
  readonly upstreamTls: UpstreamTls;
}

/** Before anything is made: a sandbox that is to use a secret that is not there is not made at all. */
export function requireSecrets(names: readonly string[], source: SecretSource): void {
  for (const name of names) {
    if (source.binding(name) !== undefined) continue;
    throw new SallyportError('secret_not_found', `egress.credentials: there is no secret ${name}`, {
      details: { field: 'egress.credentials', name },
      advice: `Set it with \`sally secret set ${name}\`; \`sally secret ls\` shows those that are there.`,
    });
  }
}

export class BoxCredentials {
  readonly credentials: Credentials;
  readonly #authority: SandboxAuthority;
  readonly #upstreamTls: UpstreamTls;
  readonly #names: readonly string[];
  readonly #source: SecretSource;

  constructor(id: SandboxId, names: readonly string[], secrets: GateSecrets, now: Date = new Date()) {
    const { source, registry, values, keys, upstreamTls } = secrets;
    const kept = keys.load(id);
    this.#upstreamTls = upstreamTls;
    this.#names = names;
    this.#source = source;
    this.#authority =
      kept === undefined ? SandboxAuthority.create(id, now) : SandboxAuthority.restore(kept.authority);
    this.credentials = new Credentials({
      sandbox: id,
      names,
      phantoms: kept?.phantoms ?? {},
      source,
      registry,
      values,
    });
    const phantoms = { ...this.credentials.phantoms() };
    const isKept = kept !== undefined && names.every((name) => kept.phantoms[name] !== undefined);
    if (!isKept) keys.save(id, { authority: this.#authority.stored(), phantoms });
  }

  /** For the thread that serves the connections of this sandbox. */
  keys(): { readonly authority: StoredAuthority; readonly phantoms: Record<string, string> } {
    return { authority: this.#authority.stored(), phantoms: { ...this.credentials.phantoms() } };
  }

  /** A secret is or was bound to it, so TLS to it is opened. */
  needsInspection(destination: Destination): boolean {
    return this.credentials.applies(destination);
  }

  async intercept(
    client: Duplex,
    hello: ClientHello,
    session: EgressSession,
    options: {
      readonly decision: Allowed;
      readonly authority: Destination;
      readonly pool?: UpstreamPool;
      readonly budget?: RequestBudget;
      readonly signal: AbortSignal;
    },
  ): Promise<void> {
    const { credentials } = this;
    const parts = { ca: this.#authority, credentials, upstreamTls: this.#upstreamTls };
    await interceptTls(client, hello, session, { ...options, ...parts });
  }

  /** For `relayHttp` of the same sandbox. */
  relayParts(): { readonly credentials: Credentials; readonly upstreamTls: UpstreamTls } {
    return { credentials: this.credentials, upstreamTls: this.#upstreamTls };
  }

  /** Files for a folder of ours inside, and the variables that name them. */
  trust(imageRoots: string | undefined, folder: string): Trust {
    return trustFiles(imageRoots, this.#authority, folder);
  }

  /** Of each secret, whether requests can get it. */
  async states(): Promise<readonly VerifyCheck[]> {
    const rows = this.#names.map(async (name): Promise<VerifyCheck> => {
      const checked = await this.#source.check?.(name);
      const { state = 'valid', message = '' } = checked ?? {};
      const row = { name: `secret ${name}`, expected: 'valid', found: state };
      if (state === 'valid' || state === 'expiring') return { ...row, status: 'ok' };
      return { ...row, status: 'failed', advice: message };
    });
    return await Promise.all(rows);
  }

  close(): void {
    this.credentials.close();
  }
}
