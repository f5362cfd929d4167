/**
 * Secrets of the host: `secrets.json` in the state folder, for its owner alone, replaced as a whole. A value is in it, or in an
 * item of the keyring that it names; one that is in the keyring is never looked for elsewhere. A value leaves this module by
 * `value` and nothing else, for the gate; it is in no list, no error and no log.
 *
 * Several processes share the file. A change is made to the file as it is then, under its lock; a call for a secret reads the file
 * again when another process replaced it. Keyrings and commands, which may wait for a person, are asked without the lock.
 */

import { randomBytes } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { Serial } from '../lib/serial.ts';
import { SallyportError } from '../protocol/errors.ts';
import { knownServices } from '../protocol/known-service-names.ts';
import {
  fewestSecretCharacters,
  type KeptSecret,
  type SecretBinding,
  type SecretChange,
  type SecretCheckView,
  secretBinding,
  secretName,
  secretValue,
} from '../protocol/secrets.ts';
import { type Keyring, unavailable } from './keyring.ts';
import { RecentValues } from './recent-values.ts';
import { runSecretCommand } from './secret-command.ts';
import { errno, stateFailure } from './state-failure.ts';
import { replaceFile } from './state-folder.ts';
import { withStateLock } from './state-lock.ts';

const usualTtlMs = 300_000;
/** A value that was changed by other programs counts after this long. */
const keyringTtlMs = 60_000;
const expiringMs = 7 * 86_400_000;

const storedSecret = z.strictObject({
  service: z.enum(knownServices).optional(),
  binding: secretBinding,
  value: secretValue.optional(),
  /** The item of the keyring that has the value. */
  keyring: z
    .string()
    .regex(/^[0-9a-f]{32}$/)
    .optional(),
  command: z.array(z.string()).min(1).optional(),
  ttl_ms: z.number().optional(),
  budget: z.number().optional(),
  updated_at: z.string(),
  expires_at: z.string().optional(),
});
type StoredSecret = z.infer<typeof storedSecret>;

type Source = Pick<StoredSecret, 'value' | 'keyring' | 'command' | 'ttl_ms'>;

const fileSchema = z.strictObject({ version: z.literal(1), secrets: z.record(secretName, storedSecret) });

/** Where the text of all secrets is kept: a file, or whatever else a machine has for it. */
export interface SecretVault {
  /** Another one after each change, of whatever process. */
  version(): string;
  read(): string | undefined;
  write(text: string): void;
  /** Runs `change` while no other process does this. */
  exclusively<T>(change: () => T): Promise<T>;
}

export function fileVault(path: string): SecretVault {
  return {
    version: () => {
      try {
        const facts = statSync(path, { bigint: true, throwIfNoEntry: false });
        return facts === undefined ? '' : `${facts.ino} ${facts.size} ${facts.mtimeNs} ${facts.ctimeNs}`;
      } catch (cause) {
        throw stateFailure('reading the secrets', path, cause);
      }
    },
    read: () => {
      try {
        return readFileSync(path, 'utf8');
      } catch (cause) {
        if (errno(cause) === 'ENOENT') return undefined;
        throw stateFailure('reading the secrets', path, cause);
      }
    },
    // The mode is that of the temporary file, which takes the place of the old one.
    write: (text) => replaceFile(path, text),
    exclusively: (change) => withStateLock(`${path}.lock`, async () => change()),
  };
}

/** How a service answers a value: it takes it, it refuses it, or that cannot be told now. */
export type ServiceAnswer = 'accepted' | 'refused' | { readonly unknown: string };
export type AskService = (
  binding: SecretBinding,
  value: string,
  signal: AbortSignal,
) => Promise<ServiceAnswer>;

/** Without a keyring all values are in the file; without `ask` no service is asked. */
export function openSecrets(
  stateDir: string,
  now: () => Date = () => new Date(),
  keyring?: Keyring,
  ask?: AskService,
): Secrets {
  return new Secrets(fileVault(join(stateDir, 'secrets.json')), now, keyring, ask);
}

export class Secrets {
  readonly #vault: SecretVault;
  readonly #now: () => Date;
  readonly #keyring: Keyring | undefined;
  readonly #ask: AskService | undefined;
  readonly #recent = new RecentValues();
  readonly #changes = new Serial();
  #loaded: ReadonlyMap<string, StoredSecret> = new Map();
  /** Of what is loaded; undefined: read again. */
  #version: string | undefined;

  constructor(vault: SecretVault, now: () => Date, keyring?: Keyring, ask?: AskService) {
    this.#vault = vault;
    this.#now = now;
    this.#keyring = keyring;
    this.#ask = ask;
  }

  list(): readonly KeptSecret[] {
    return [...this.#all()]
      .map(([name, secret]) => kept(name, secret))
      .sort((a, b) => a.name.localeCompare(b.name));
  }

  find(name: string): KeptSecret | undefined {
    const secret = this.#all().get(name);
    return secret === undefined ? undefined : kept(name, secret);
  }

  binding(name: string): SecretBinding | undefined {
    return this.#all().get(name)?.binding;
  }

  budget(name: string): number | undefined {
    return this.#all().get(name)?.budget;
  }

  /** Those that are bound to `host`, with the values that are there without asking a keyring or running a command. */
  boundTo(
    host: string,
  ): readonly { readonly name: string; readonly port: number; readonly value: string | undefined }[] {
    return [...this.#all()].flatMap(([name, { binding, value }]) =>
      binding.hosts.includes(host)
        ? [{ name, port: binding.port, value: value ?? this.#recent.last(name) }]
        : [],
    );
  }

  async value(name: string): Promise<string> {
    const { value, keyring: item, command = [], ttl_ms: ttlMs = usualTtlMs } = this.#get(name);
    if (value !== undefined) return value;
    if (item === undefined)
      return await this.#recent.value(name, ttlMs, () => runSecretCommand(name, command));
    return await this.#recent.value(name, keyringTtlMs, () => this.#theKeyring(name).read(name, item));
  }

  async set(name: string, change: SecretChange): Promise<KeptSecret> {
    return await this.#changes.run(() => this.#set(name, change));
  }

  async #set(name: string, change: SecretChange): Promise<KeptSecret> {
    for (;;) {
      const before = this.#all().get(name);
      const secret = await this.#changed(name, change, before);
      const isNewItem = secret.keyring !== before?.keyring;
      const isKept = await this.#replace(name, before, secret).catch(async (error: unknown) => {
        if (isNewItem) await this.#forgetItem(secret);
        throw error;
      });
      if (isKept) {
        // Only now: until the file names another, this is the item that counts.
        const left = isNewItem ? await this.#forgetItem(before) : undefined;
        return { ...kept(name, secret), ...(left === undefined ? {} : { note: leftWords(left) }) };
      }
      if (isNewItem) await this.#forgetItem(secret);
    }
  }

  async #changed(
    name: string,
    change: SecretChange,
    before: StoredSecret | undefined,
  ): Promise<StoredSecret> {
    const binding = change.binding ?? before?.binding;
    if (binding === undefined) throw unbound(name);
    const service = change.service ?? (change.binding === undefined ? before?.service : undefined);
    const budget = change.budget ?? before?.budget;
    const isRenewed = change.value !== undefined || change.command !== undefined;
    const own = change.value === undefined ? undefined : expiryOf(change.value);
    const expires = change.expiresAt ?? (isRenewed ? own : before?.expires_at);
    const source = await this.#source(name, change, before);
    return {
      ...(service === undefined ? {} : { service }),
      binding,
      ...source,
      ...(budget === undefined ? {} : { budget }),
      updated_at: this.#now().toISOString(),
      ...(expires === undefined ? {} : { expires_at: expires }),
    };
  }

  /** False: another process changed this secret after `before` was read, and nothing was written. */
  async #replace(name: string, before: StoredSecret | undefined, secret: StoredSecret): Promise<boolean> {
    return await this.#vault.exclusively(() => {
      const all = this.#reload();
      if (!isDeepStrictEqual(all.get(name), before)) return false;
      this.#write(new Map([...all, [name, secret]]));
      this.#recent.forget(name);
      return true;
    });
  }

  async remove(name: string): Promise<void> {
    await this.#changes.run(async () => {
      const secret = await this.#vault.exclusively(() => {
        const all = this.#reload();
        const removed = this.#get(name);
        this.#write(new Map([...all].filter(([own]) => own !== name)));
        this.#recent.forget(name);
        return removed;
      });
      const left = await this.#forgetItem(secret);
      if (left === undefined) return;
      throw new SallyportError(
        'keyring_unavailable',
        `the secret ${name} is removed, but ${leftWords(left)}`,
        {
          details: { name },
          advice: `Remove it there: \`${left}\`.`,
        },
      );
    });
  }

  /** One source takes the place of the other. */
  async #source(name: string, change: SecretChange, before: StoredSecret | undefined): Promise<Source> {
    const { value, command, store = 'auto' } = change;
    if (value !== undefined && value.length < fewestSecretCharacters) throw tooShort(name);
    const ttlMs = change.ttlMs ?? (value === undefined && command === undefined ? before?.ttl_ms : undefined);
    const ttl = ttlMs === undefined ? {} : { ttl_ms: ttlMs };
    if (command !== undefined) return { command: [...command], ...ttl };
    const there = placeOf(before);
    if (value === undefined) {
      if (there !== undefined && store !== 'auto' && store !== there) {
        return { ...(await this.#keep(name, await this.value(name), store)), ...ttl };
      }
      const { value: old, keyring, command: oldCommand } = before ?? {};
      if (old !== undefined) return { value: old, ...ttl };
      if (keyring !== undefined) return { keyring, ...ttl };
      if (oldCommand !== undefined) return { command: oldCommand, ...ttl };
      throw new SallyportError('secret_invalid', `the secret ${name} has no value`, {
        details: { name },
        advice: 'Give its value on standard input, or a command that prints it with --command.',
      });
    }
    const place = store === 'auto' ? (there ?? (await this.#usualPlace())) : store;
    return { ...(await this.#keep(name, value, place)), ...ttl };
  }

  async #usualPlace(): Promise<'keyring' | 'file'> {
    return (await this.#keyring?.answers()) === true ? 'keyring' : 'file';
  }

  async #keep(name: string, value: string, place: 'keyring' | 'file'): Promise<Source> {
    if (place === 'file') return { value };
    const keyring = this.#theKeyring(name);
    if (!(await keyring.answers())) throw unavailable(name, 'is not there');
    const item = randomBytes(16).toString('hex');
    await keyring.keep(name, item, value);
    return { keyring: item };
  }

  /** Undefined when its value is gone; else the line that would remove it. */
  async #forgetItem(secret: StoredSecret | undefined): Promise<string | undefined> {
    const item = secret?.keyring;
    if (item === undefined) return undefined;
    const keyring = this.#keyring;
    if (keyring === undefined) return `item ${item}`;
    return (await keyring.forget(item)) ? undefined : keyring.forgetLine(item);
  }

  #theKeyring(name: string): Keyring {
    if (this.#keyring === undefined) throw unavailable(name, 'is none that is known on this kind of machine');
    return this.#keyring;
  }

  /**
   * R8: asked before a run, so that it does not fail in the middle. A command is really run, and once more where what it printed
   * before is over or refused by now: that is how such a secret is renewed.
   */
  async check(
    name: string,
    options: { readonly ask: boolean; readonly signal: AbortSignal } = never,
  ): Promise<SecretCheckView> {
    const secret = this.#all().get(name);
    if (secret === undefined) {
      return {
        name,
        state: 'missing',
        message: `there is no secret ${name}; set it with \`sally secret set ${name}\``,
      };
    }
    try {
      const first = await this.#judge(name, secret, options);
      if (first.state !== 'expired' || secret.command === undefined) return first;
      this.#recent.forget(name);
      return await this.#judge(name, secret, options);
    } catch (error) {
      const message = error instanceof SallyportError ? error.message : 'its value cannot be had';
      return { name, state: 'failing', message };
    }
  }

  async #judge(
    name: string,
    secret: StoredSecret,
    { ask, signal }: { readonly ask: boolean; readonly signal: AbortSignal },
  ): Promise<SecretCheckView> {
    const value = await this.value(name);
    const expires = secret.expires_at ?? expiryOf(value);
    const known = {
      name,
      ...judgeExpiry(expires, this.#now(), renewal(name, secret)),
      ...(expires === undefined ? {} : { expires_at: expires }),
    };
    if (!ask || known.state === 'expired' || this.#ask === undefined) return known;
    if (secret.binding.check_path === undefined) return known;
    const answer = await this.#ask(secret.binding, value, signal);
    const [host = ''] = secret.binding.hosts;
    if (answer === 'refused') {
      return { ...known, state: 'expired', message: `${host} refuses it; ${renewal(name, secret)}` };
    }
    const said = answer === 'accepted' ? `${host} takes it` : `${host} could not be asked: ${answer.unknown}`;
    return { ...known, message: `${said}; ${known.message}` };
  }

  #get(name: string): StoredSecret {
    const secret = this.#all().get(name);
    if (secret === undefined) {
      throw new SallyportError('secret_not_found', `there is no secret ${name}`, { details: { name } });
    }
    return secret;
  }

  #all(): ReadonlyMap<string, StoredSecret> {
    return this.#vault.version() === this.#version ? this.#loaded : this.#reload();
  }

  #reload(): ReadonlyMap<string, StoredSecret> {
    this.#version = undefined;
    // First: a file that is replaced in between is then read once more.
    const version = this.#vault.version();
    const secrets = load(this.#vault);
    for (const [name, secret] of this.#loaded) {
      if (!isDeepStrictEqual(secrets.get(name), secret)) this.#recent.forget(name);
    }
    this.#loaded = secrets;
    this.#version = version;
    return secrets;
  }

  #write(secrets: ReadonlyMap<string, StoredSecret>): void {
    this.#vault.write(`${JSON.stringify({ version: 1, secrets: Object.fromEntries(secrets) }, null, 2)}\n`);
    this.#version = undefined;
  }
}

/** A file that cannot be understood is not overwritten. SECURITY: what is wrong with it is not said, as that may show a value. */
function load(vault: SecretVault): Map<string, StoredSecret> {
  const text = vault.read();
  if (text === undefined) return new Map();
  const parsed = fileSchema.safeParse(parse(text));
  if (parsed.success) return new Map(Object.entries(parsed.data.secrets));
  throw new SallyportError('secret_invalid', 'the file of the secrets cannot be understood', {
    advice: 'Look at secrets.json in the state folder; remove it, then set the secrets again.',
  });
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function kept(name: string, secret: StoredSecret): KeptSecret {
  const { service, binding, command, budget, updated_at, expires_at } = secret;
  const store = placeOf(secret);
  return {
    name,
    ...(service === undefined ? {} : { service }),
    binding,
    source: command === undefined ? 'value' : 'command',
    ...(store === undefined ? {} : { store }),
    ...(budget === undefined ? {} : { budget }),
    updatedAt: updated_at,
    ...(expires_at === undefined ? {} : { expiresAt: expires_at }),
  };
}

const leftWords = (line: string): string => `the keyring may still have a value of it (${line} removes it)`;

function placeOf(secret: StoredSecret | undefined): 'keyring' | 'file' | undefined {
  if (secret?.keyring !== undefined) return 'keyring';
  return secret?.value === undefined ? undefined : 'file';
}

const never = { ask: false, signal: new AbortController().signal };

/** What to do about one that is over. */
function renewal(name: string, { command }: StoredSecret): string {
  return command === undefined
    ? `set a new one with \`sally secret set ${name}\``
    : `its command (${command[0]}) prints one that is over: log in there again`;
}

function judgeExpiry(
  expires: string | undefined,
  now: Date,
  renew: string,
): { readonly state: 'valid' | 'expiring' | 'expired'; readonly message: string } {
  if (expires === undefined) return { state: 'valid', message: 'it is there; when it expires is not known' };
  const leftMs = Date.parse(expires) - now.getTime();
  if (leftMs <= 0) return { state: 'expired', message: `it expired at ${expires}; ${renew}` };
  if (leftMs < expiringMs) return { state: 'expiring', message: `it expires at ${expires}; renew it soon` };
  return { state: 'valid', message: `it expires at ${expires}` };
}

/** A JSON web token says itself when it ends. */
function expiryOf(value: string): string | undefined {
  const payload = /^[\w-]+\.([\w-]+)\.[\w-]*$/.exec(value)?.[1];
  if (payload === undefined) return undefined;
  const claims = z
    .object({ exp: z.number().int().positive().max(253_402_300_799) })
    .safeParse(parse(Buffer.from(payload, 'base64url').toString('utf8')));
  return claims.success ? new Date(claims.data.exp * 1000).toISOString() : undefined;
}

const tooShort = (name: string): SallyportError =>
  new SallyportError(
    'secret_invalid',
    `the secret ${name} has fewer than ${fewestSecretCharacters} characters, so the gate cannot mask it in answers`,
    { details: { name }, advice: 'Use a longer value: let the service issue another token.' },
  );

const unbound = (name: string): SallyportError =>
  new SallyportError('secret_invalid', `the secret ${name} is bound to no host`, {
    details: { name },
    advice: `Say where it may go: \`sally secret set ${name} --host api.example.com --header 'authorization: Bearer {}' --env NAME\`; known services (${knownServices.join(', ')}) need no flags.`,
  });
