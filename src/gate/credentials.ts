/**
 * The credentials of one sandbox. The sandbox holds phantoms; here, and only on the way to the host, port, path and header that
 * a secret is bound to, a phantom becomes the real value. A phantom that goes anywhere else is stopped and told of. The real value
 * is asked for at each request, so a rotated one counts from the next request on and a removed one from then on not.
 */

import { fewestSecretCharacters, type SecretBinding, type SecretCheckView } from '../protocol/secrets.ts';
import type { Destination } from './contract.ts';
import { withPlainAnswer } from './credentials/answer-mask.ts';
import type { KnownValues } from './credentials/known-values.ts';
import { newPhantom, type PhantomOwner, type PhantomRegistry } from './credentials/phantoms.ts';
import { scanned } from './credentials/scan-body.ts';
import type { AnswerMask, PreparedRequest, RequestCredentials } from './http/credential-port.ts';
import { CredentialRefused } from './http/denial.ts';
import { Headers } from './http/headers.ts';

/** The secrets of the host, as they are now. */
export interface SecretSource {
  binding(name: string): SecretBinding | undefined;
  budget(name: string): number | undefined;
  /** Rejects where there is none, or where the command that makes it fails. */
  value(name: string): Promise<string>;
  /** All secrets that are bound to a host, each with its value if that is there without asking a keyring or running a command. */
  boundTo(host: string): readonly BoundSecret[];
  /** Whether it can be used now, and what to do if not. */
  check?(name: string): Promise<Pick<SecretCheckView, 'state' | 'message'>>;
}

export interface BoundSecret {
  readonly name: string;
  readonly value?: string | undefined;
}

export interface CredentialParts {
  readonly sandbox: string;
  readonly names: readonly string[];
  /** By name; those of an earlier daemon, because programs inside still have them. Missing ones are made. */
  readonly phantoms?: Readonly<Record<string, string>>;
  readonly source: SecretSource;
  readonly registry: PhantomRegistry;
  /** Of all sandboxes of the daemon. */
  readonly values: KnownValues;
}

type Outgoing = Parameters<RequestCredentials['prepare']>[0];

/** The values of one request: what is masked is what was put in, also where a command prints another value each time. */
type RequestValues = Map<string, Promise<string>>;

/** A listener inside that stands for a service, and what programs are told of it. */
export interface BaseUrlService {
  readonly secret: string;
  readonly destination: Destination;
  readonly env: string;
  readonly path: string;
}

export class Credentials implements RequestCredentials {
  readonly #sandbox: string;
  readonly #names: readonly string[];
  readonly #phantoms: ReadonlyMap<string, string>;
  readonly #source: SecretSource;
  readonly #registry: PhantomRegistry;
  readonly #used = new Map<string, number>();
  readonly #values: KnownValues;

  constructor({ sandbox, names, phantoms = {}, source, registry, values }: CredentialParts) {
    this.#sandbox = sandbox;
    this.#names = names;
    this.#source = source;
    this.#registry = registry;
    this.#values = values;
    this.#phantoms = new Map(
      names.map((name) => [name, phantoms[name] ?? newPhantom(source.binding(name)?.prefix ?? '')]),
    );
    for (const [secret, phantom] of this.#phantoms) registry.add(phantom, { sandbox, secret });
  }

  /** To be kept beside the sandbox, for the next daemon. */
  phantoms(): Readonly<Record<string, string>> {
    return Object.fromEntries(this.#phantoms);
  }

  /** What the sandbox is given: phantoms by their variables, and the addresses of listeners that stand for a service. */
  env(baseUrlPorts: Readonly<Record<string, number>> = {}): Record<string, string> {
    const out: Record<string, string> = {};
    for (const [name, phantom] of this.#phantoms) {
      for (const variable of this.#source.binding(name)?.env ?? []) out[variable] = phantom;
    }
    for (const { secret, env, path } of this.baseUrls()) {
      const port = baseUrlPorts[secret];
      if (port !== undefined) out[env] = `http://127.0.0.1:${port}${path}`;
    }
    return out;
  }

  baseUrls(): readonly BaseUrlService[] {
    return this.#names.flatMap((secret) => {
      const binding = this.#source.binding(secret);
      const [host] = binding?.hosts ?? [];
      if (binding?.base_url === undefined || host === undefined) return [];
      return [{ secret, destination: { host, port: binding.port, isAddress: false }, ...binding.base_url }];
    });
  }

  /** Where its secrets may go. */
  destinations(): readonly Pick<Destination, 'host' | 'port'>[] {
    return this.#names.flatMap((name) => {
      const binding = this.#source.binding(name);
      return (binding?.hosts ?? []).map((host) => ({ host, port: binding?.port ?? 443 }));
    });
  }

  /**
   * On every port of a host that one of its secrets is or was bound to: a server may return there what it got before, or
   * elsewhere.
   */
  applies({ host }: Destination): boolean {
    const isBound = this.#names.some((name) => this.#source.binding(name)?.hosts.includes(host) === true);
    return isBound || this.#values.has(host, this.#names);
  }

  goesByPath(destination: Destination): boolean {
    return this.#bindingsFor(destination).some(({ path }) => path !== undefined);
  }

  #bindingsFor({ host, port }: Destination): readonly SecretBinding[] {
    return this.#names.flatMap((name) => {
      const binding = this.#source.binding(name);
      return binding !== undefined && binding.port === port && binding.hosts.includes(host) ? [binding] : [];
    });
  }

  /** Nothing of this sandbox is anybody's any more. */
  close(): void {
    this.#registry.removeAllOf(this.#sandbox);
  }

  async prepare(request: Outgoing): Promise<PreparedRequest> {
    this.#refuseIn(request.path, 'its path or query');
    const fields: [string, string][] = [];
    const secrets = new Set<string>();
    const values: RequestValues = new Map();
    for (const [name, value] of request.headers.fields) {
      const changed = await this.#fieldOf(name.toLowerCase(), value, request, secrets, values);
      fields.push([name, changed]);
    }
    this.#count(secrets);
    const mask = await this.#maskFor(request.destination, values);
    const headers = new Headers(fields);
    const coding = request.headers.get('content-encoding')?.toLowerCase();
    return {
      headers: mask === undefined ? headers : withPlainAnswer(headers),
      // A transcript that an agent sends to its own service may hold the phantom, which is worth nothing there or elsewhere.
      checkBody: (body, options) =>
        scanned(
          body,
          coding,
          this.#registry,
          (owner) =>
            this.#isAtHome(owner, request.destination) ? undefined : this.#misused(owner, 'its body'),
          options,
        ),
      mask,
    };
  }

  /**
   * SECURITY: a server may return a value in the answer to any request of any sandbox, so every answer of a host that a secret is
   * or was bound to is masked with all values that it may know. A value of this sandbox that cannot be had cannot be masked: then
   * nothing is asked of that host. A value of another sandbox's secret is masked once it was put in; no command is run for it.
   */
  async #maskFor({ host }: Destination, values: RequestValues): Promise<AnswerMask | undefined> {
    const all = this.#source.boundTo(host);
    for (const { name, value: atHand } of all) {
      const value = this.#names.includes(name) ? await this.#real(name, values) : atHand;
      if (value === undefined || value.length < fewestSecretCharacters) continue;
      this.#values.learn({ host, secret: name, value });
    }
    return all.length > 0 || this.#values.knows(host) ? this.#values.maskOf(host) : undefined;
  }

  /** The value of one header field as it may leave. */
  async #fieldOf(
    name: string,
    value: string,
    request: Outgoing,
    secrets: Set<string>,
    values: RequestValues,
  ): Promise<string> {
    const basic = readBasic(value);
    const owners = this.#registry.ownersIn(basic ?? value);
    let out = basic ?? value;
    for (const owner of owners) {
      const phantom = this.#phantomFor(owner, name, request);
      const real = await this.#real(owner.secret, values);
      // Here as well as below: the secret may be bound elsewhere by then.
      this.#values.learn({ host: request.destination.host, secret: owner.secret, value: real });
      secrets.add(owner.secret);
      // A string here would be a pattern in which $$ and $& mean something else.
      out = out.replaceAll(phantom, () => real);
    }
    if (owners.length === 0) {
      this.#refuseIn(value, `the header ${name}`);
      return value;
    }
    if (basic === undefined) return out;
    return `Basic ${Buffer.from(out, 'latin1').toString('base64')}`;
  }

  /** The phantom, if it may be replaced here; else throws. */
  #phantomFor(owner: PhantomOwner, header: string, { destination, scheme, path }: Outgoing): string {
    const phantom = this.#phantoms.get(owner.secret);
    if (owner.sandbox !== this.#sandbox || phantom === undefined)
      throw this.#misused(owner, `the header ${header}`);
    const binding = this.#source.binding(owner.secret);
    if (binding === undefined) throw gone(owner.secret);
    const fits =
      scheme === 'https' &&
      binding.port === destination.port &&
      binding.hosts.includes(destination.host) &&
      binding.headers.includes(header) &&
      isBelow(path, binding.path);
    if (!fits) throw this.#misused(owner, `the header ${header} to ${destination.host}:${destination.port}`);
    return phantom;
  }

  async #real(secret: string, values: RequestValues): Promise<string> {
    const asked = values.get(secret) ?? this.#source.value(secret);
    values.set(secret, asked);
    const value = await asked.catch(() => {
      // SECURITY: the cause stays on the host; the words of a failed command may hold anything.
      throw gone(secret);
    });
    if (value.length < fewestSecretCharacters) throw tooShort(secret);
    return value;
  }

  #count(secrets: ReadonlySet<string>): void {
    for (const secret of secrets) {
      const used = this.#used.get(secret) ?? 0;
      const budget = this.#source.budget(secret);
      if (budget !== undefined && used >= budget) {
        throw new CredentialRefused(
          'secret_budget_spent',
          `this sandbox has used its ${budget} requests with the secret ${secret}`,
          `On the host: \`sally secret set ${secret} --budget …\` with a larger one.`,
        );
      }
      this.#used.set(secret, used + 1);
    }
  }

  #isAtHome({ sandbox, secret }: PhantomOwner, { host, port }: Destination): boolean {
    const binding = sandbox === this.#sandbox ? this.#source.binding(secret) : undefined;
    return binding !== undefined && binding.port === port && binding.hosts.includes(host);
  }

  /** Also as percent signs hide it, twice over. */
  #refuseIn(text: string, where: string): void {
    let form = text;
    for (let depth = 0; depth < 3; depth++) {
      const [owner] = this.#registry.ownersIn(form);
      if (owner !== undefined) throw this.#misused(owner, where);
      const next = form.replaceAll(/%([0-9a-f]{2})/gi, (_all, hex: string) =>
        String.fromCharCode(Number.parseInt(hex, 16)),
      );
      if (next === form) return;
      form = next;
    }
  }

  #misused({ sandbox, secret }: PhantomOwner, where: string): CredentialRefused {
    if (sandbox !== this.#sandbox) {
      return new CredentialRefused(
        'phantom_foreign',
        `the request has the phantom of another sandbox in ${where}`,
        'A phantom works in the sandbox alone that it was made for.',
      );
    }
    const { hosts = [], headers = [], port = 443, path = '' } = this.#source.binding(secret) ?? {};
    const places = hosts.map((host) => `https://${host}${port === 443 ? '' : `:${port}`}${path}`);
    return new CredentialRefused(
      'phantom_misused',
      `the request has the phantom of the secret ${secret} in ${where}, where it does not belong`,
      `It belongs in the header ${headers.join(' or ')} to ${places.join(' or ')}.`,
    );
  }
}

/** The path alone: a query is not part of where a secret is bound. */
function isBelow(path: string, bound: string | undefined): boolean {
  if (bound === undefined) return true;
  const [name = ''] = path.split('?');
  const root = bound.replace(/\/$/, '');
  return name === root || name.startsWith(`${root}/`);
}

/** User and password of `Basic`, if the field is one. */
function readBasic(value: string): string | undefined {
  const match = /^basic[ ]+([A-Za-z0-9+/=_-]+)$/i.exec(value);
  return match === null ? undefined : Buffer.from(match[1] ?? '', 'base64').toString('latin1');
}

const gone = (secret: string): CredentialRefused =>
  new CredentialRefused(
    'secret_missing',
    `the secret ${secret} is not there any more, or cannot be had`,
    `On the host: \`sally secret check ${secret}\`, then \`sally secret set ${secret}\`.`,
  );

const tooShort = (secret: string): CredentialRefused =>
  new CredentialRefused(
    'secret_too_short',
    `the secret ${secret} has fewer than ${fewestSecretCharacters} characters, which cannot be masked in answers`,
    `On the host: \`sally secret set ${secret}\` with a longer value.`,
  );
