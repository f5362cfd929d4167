/**
 * Names to addresses, at most once for each connection. What comes back is judged and dialled as it is; nothing is asked a
 * second time. A sandbox may be told the same again for as long as the answer itself says, and never for long.
 */

import type { RecordWithTtl } from 'node:dns';
import { Resolver } from 'node:dns/promises';
import { type Address, parseAddress } from '../policy/egress/address.ts';
import { SallyportError } from '../protocol/errors.ts';

export interface NameResolver {
  /** Every address of the name, IPv4 first. Rejects with `egress_denied` (`name_not_resolved`) where there is none. */
  resolve(name: string, signal: AbortSignal): Promise<readonly Address[]>;
}

/** Of this machine. */
export interface MachineResolver extends NameResolver {
  /** For one sandbox: what another one asked for must not show in how fast a name is known. */
  remembering(): NameResolver;
}

interface Answers {
  readonly addresses: readonly Address[];
  /** As the name's owner wants it. */
  readonly lifetimeMs: number;
}

const mostAddresses = 32;
/** Long enough for a program that opens connection after connection, and short for who moves a name. */
const longestMs = 5000;
const mostRemembered = 256;

/** `servers`: `address` or `address:port`; absent: those of this machine. */
export function dnsResolver(servers?: readonly string[]): MachineResolver {
  const ask = (name: string, signal: AbortSignal): Promise<Answers> => askServers(name, servers, signal);
  return {
    resolve: async (name, signal) => (await ask(name, signal)).addresses,
    remembering: () => new RememberedNames(ask),
  };
}

class RememberedNames implements NameResolver {
  readonly #ask: (name: string, signal: AbortSignal) => Promise<Answers>;
  readonly #known = new Map<string, { readonly addresses: readonly Address[]; readonly untilMs: number }>();

  constructor(ask: (name: string, signal: AbortSignal) => Promise<Answers>) {
    this.#ask = ask;
  }

  async resolve(name: string, signal: AbortSignal): Promise<readonly Address[]> {
    const known = this.#known.get(name);
    if (known !== undefined && performance.now() < known.untilMs) return known.addresses;
    this.#known.delete(name);
    const { addresses, lifetimeMs } = await this.#ask(name, signal);
    if (lifetimeMs > 0) this.#remember(name, addresses, Math.min(lifetimeMs, longestMs));
    return addresses;
  }

  #remember(name: string, addresses: readonly Address[], forMs: number): void {
    this.#known.set(name, { addresses, untilMs: performance.now() + forMs });
    const [oldest] = this.#known.keys();
    if (this.#known.size > mostRemembered && oldest !== undefined) this.#known.delete(oldest);
  }
}

async function askServers(
  name: string,
  servers: readonly string[] | undefined,
  signal: AbortSignal,
): Promise<Answers> {
  // SECURITY: one for each name, and so a port of its own: who would guess an answer has to guess that, too.
  const resolver = new Resolver({ timeout: 2000, tries: 2 });
  if (servers !== undefined) resolver.setServers(servers);
  const cancel = (): void => resolver.cancel();
  signal.addEventListener('abort', cancel, { once: true });
  try {
    // A dot at the end: the name as it is, never with a search domain of this machine.
    const answers = await Promise.allSettled([
      resolver.resolve4(`${name}.`, { ttl: true }),
      resolver.resolve6(`${name}.`, { ttl: true }),
    ]);
    return readAnswers(name, answers);
  } finally {
    signal.removeEventListener('abort', cancel);
  }
}

/** SECURITY: a family that failed otherwise than by having no address may hide a private one: then nothing is known. */
function readAnswers(
  name: string,
  answers: readonly PromiseSettledResult<readonly RecordWithTtl[]>[],
): Answers {
  const records: RecordWithTtl[] = [];
  for (const answer of answers) {
    if (answer.status === 'fulfilled') records.push(...answer.value);
    else if (!isEmptyAnswer(answer.reason)) throw notResolved(name, answer.reason);
  }
  const addresses = records.map(({ address }) => parseAddress(address));
  if (addresses.length > mostAddresses) throw notResolved(name, new Error('too many addresses'));
  if (addresses.length === 0 || addresses.includes(undefined)) {
    throw notResolved(name, new Error('it has no address'));
  }
  return {
    addresses: addresses.filter((address) => address !== undefined),
    lifetimeMs: Math.min(...records.map(({ ttl }) => ttl)) * 1000,
  };
}

const isEmptyAnswer = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && (error.code === 'ENODATA' || error.code === 'ENOTFOUND');

function notResolved(name: string, cause: unknown): SallyportError {
  const why = cause instanceof Error ? cause.message : String(cause);
  return new SallyportError('egress_denied', `${name} could not be resolved: ${why}`, {
    details: { code: 'name_not_resolved', host: name },
    advice: 'Look whether the name exists and whether this machine can resolve it.',
    cause,
  });
}
