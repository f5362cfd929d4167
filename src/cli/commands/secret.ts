/** `sally secret`: set, ls, rm, check. */

import { wantedSecrets } from '../../agents/choose-secrets.ts';
import { findAgent, knownAgents } from '../../agents/find-agent.ts';
import { readConfigEnvironment } from '../../config/config.ts';
import { readUserFile } from '../../config/user-file.ts';
import { SallyportError } from '../../protocol/errors.ts';
import { type KnownService, knownServices } from '../../protocol/known-service-names.ts';
import { type SecretBody, type SecretStore, secretStores } from '../../protocol/secrets.ts';
import { type SecretInfo, type SecretOptions, Secrets } from '../../sdk/secrets.ts';
import { agentPlaces } from '../agent/agent-options.ts';
import type { CliContext } from '../context.ts';
import { exitCode } from '../exit-codes.ts';
import { note, print, printJson } from '../output.ts';
import { readSecret } from '../read-secret.ts';
import { ago, table } from '../table.ts';

export interface SetOptions {
  readonly service?: string;
  readonly host?: readonly string[];
  readonly port?: number;
  readonly path?: string;
  readonly checkPath?: string;
  readonly header?: readonly string[];
  readonly env?: readonly string[];
  readonly prefix?: string;
  readonly command?: readonly string[];
  readonly ttl?: number;
  readonly budget?: number;
  readonly expires?: string;
  readonly keepValue?: true;
  readonly store?: string;
  readonly json?: true;
}

async function withSecrets<T>(work: (secrets: Secrets) => Promise<T>): Promise<T> {
  const secrets = new Secrets();
  try {
    return await work(secrets);
  } finally {
    secrets.disconnect();
  }
}

export async function secretSetCommand(
  name: string,
  options: SetOptions,
  { signal }: CliContext,
): Promise<number> {
  return await withSecrets(async (secrets) => {
    const known = (await secrets.list(signal)).some((secret) => secret.name === name);
    const binding = bindingOf(options);
    const service = serviceOf(name, options, known, binding !== undefined);
    if (!known && service === undefined && binding === undefined) {
      throw new SallyportError('secret_invalid', `the secret ${name} is bound to no host`, {
        details: { name },
        advice: `Say where it may go: --host api.example.com --header 'authorization: Bearer {}' --env NAME; known services (${knownServices.join(', ')}) need no flags.`,
      });
    }
    const body: SecretOptions = {
      ...(service === undefined ? {} : { service }),
      ...(binding === undefined ? {} : { binding }),
      ...(await sourceOf(name, options, signal)),
      ...(await storeOf(options)),
      ...(options.budget === undefined ? {} : { budget: options.budget }),
      ...(options.expires === undefined ? {} : { expiresAt: timeOf(options.expires) }),
    };
    const secret = await secrets.set(name, body, signal);
    if (options.json === true) printJson(secret);
    else {
      const kept = secret.store === undefined ? '' : ` (kept in the ${secret.store})`;
      note(
        `the secret ${name} is set${kept}; it goes to ${placesOf(secret)} in ${secret.headers.join(' or ')}`,
      );
      if (secret.note !== undefined) note(secret.note);
    }
    return exitCode.ok;
  });
}

async function sourceOf(
  name: string,
  { command, ttl, keepValue }: SetOptions,
  signal: AbortSignal,
): Promise<Pick<SecretOptions, 'value' | 'command' | 'ttlMs'>> {
  const ttlMs = ttl === undefined ? {} : { ttlMs: ttl };
  if (command !== undefined) return { command: [...command], ...ttlMs };
  if (keepValue === true) return ttlMs;
  return { value: await readSecret(`the value of ${name}`, signal), ...ttlMs };
}

/** What the user's file says holds for values that are given; only a flag moves one that is there. */
async function storeOf({ store, command, keepValue }: SetOptions): Promise<{ readonly store?: SecretStore }> {
  if (store !== undefined) {
    const known = secretStores.find((one) => one === store);
    if (known !== undefined) return { store: known };
    throw new SallyportError('usage', `--store ${store} is not known; known are ${secretStores.join(', ')}`);
  }
  if (command !== undefined || keepValue === true) return {};
  const { userFile, home } = readConfigEnvironment();
  const file = await readUserFile(userFile, home);
  return file?.secretStore === undefined ? {} : { store: file.secretStore };
}

/** A name that is a service's own means it, unless something else is said. */
function serviceOf(
  name: string,
  { service }: SetOptions,
  known: boolean,
  isBound: boolean,
): KnownService | undefined {
  const meant = service ?? (!known && !isBound ? name : undefined);
  const found = knownServices.find((one) => one === meant);
  if (service !== undefined && found === undefined) {
    throw new SallyportError(
      'usage',
      `--service ${service} is not known; known are ${knownServices.join(', ')}`,
    );
  }
  return found;
}

function bindingOf(options: SetOptions): SecretBody['binding'] {
  const { host, port, path, checkPath, header, env, prefix } = options;
  if (host === undefined && [port, path, checkPath, header, env, prefix].every((one) => one === undefined))
    return undefined;
  if (host === undefined || header === undefined) {
    throw new SallyportError('secret_invalid', 'a secret is bound by both --host and --header', {
      advice: "Say where it may go: --host api.example.com --header 'authorization: Bearer {}'",
    });
  }
  return {
    hosts: [...host],
    headers: header.map(headerName),
    ...(port === undefined ? {} : { port }),
    ...(path === undefined ? {} : { path }),
    ...(checkPath === undefined ? {} : { check_path: checkPath }),
    ...(env === undefined ? {} : { env: [...env] }),
    ...(prefix === undefined ? {} : { prefix }),
  };
}

/** SECURITY: without the braces it is likely the secret itself, on a command line that others can read. */
function headerName(text: string): string {
  const match = /^([A-Za-z0-9-]+):\s*\S*\s*\{\}$/.exec(text);
  if (match === null) {
    throw new SallyportError('secret_invalid', '--header is a name and a form with {} where the value goes', {
      advice:
        "Write it like --header 'authorization: Bearer {}'; the value itself comes from standard input.",
    });
  }
  return (match[1] ?? '').toLowerCase();
}

function timeOf(text: string): string {
  const time = new Date(text);
  if (!/^\d{4}-\d\d-\d\d/.test(text) || Number.isNaN(time.getTime())) {
    throw new SallyportError('usage', '--expires is no date like 2027-01-31');
  }
  return time.toISOString();
}

export async function secretLsCommand(
  options: { readonly json?: true },
  { signal }: CliContext,
): Promise<number> {
  return await withSecrets(async (secrets) => {
    const all = await secrets.list(signal);
    if (options.json === true) printJson(all);
    else if (all.length === 0) note('there are no secrets');
    else {
      const rows = all.map((secret) => [
        secret.name,
        placesOf(secret),
        secret.headers.join(', '),
        secret.env.join(', '),
        secret.store ?? secret.source,
        ago(secret.updatedAt),
      ]);
      for (const line of table(['NAME', 'GOES TO', 'HEADER', 'VARIABLE', 'FROM', 'SET'], rows)) print(line);
    }
    return exitCode.ok;
  });
}

export async function secretRmCommand(names: readonly string[], { signal }: CliContext): Promise<number> {
  return await withSecrets(async (secrets) => {
    for (const name of names) await secrets.remove(name, signal);
    return exitCode.ok;
  });
}

/** 0 when all of them can be used, also those that expire soon; else 1. */
export async function secretCheckCommand(
  names: readonly string[],
  options: { readonly json?: true; readonly ask?: true; readonly offline?: true },
  { signal }: CliContext,
): Promise<number> {
  return await withSecrets(async (secrets) => {
    const known = await secrets.list(signal);
    const wanted = names.length > 0 ? names : known.map(({ name }) => name);
    const checks = await Promise.all(
      wanted.map(async (name) => {
        const isSecret = known.some((secret) => secret.name === name);
        const ofAgent = isSecret ? undefined : await tokensOf(name, known);
        const ask = options.offline !== true && (options.ask === true || ofAgent !== undefined);
        const tokens = ofAgent ?? [name];
        return await Promise.all(tokens.map((token) => secrets.check(token, signal, { ask })));
      }),
    ).then((each) => each.flat());
    if (options.json === true) printJson(checks);
    else for (const { name, state, message } of checks) print(`${name}  ${state}: ${message}`);
    const good = checks.every(({ state }) => state === 'valid' || state === 'expiring');
    return good ? exitCode.ok : exitCode.failed;
  });
}

/** Undefined: there is no such agent. */
async function tokensOf(name: string, known: readonly SecretInfo[]): Promise<readonly string[] | undefined> {
  const places = agentPlaces();
  if (!knownAgents(places).includes(name)) return undefined;
  return wantedSecrets(await findAgent(name, places), known);
}

function placesOf({ hosts, port, path = '' }: SecretInfo): string {
  return hosts.map((host) => `${host}${port === 443 ? '' : `:${port}`}${path}`).join(', ');
}
