/**
 * Which engine the environment names. Client and daemon derive the same key from the same variables; each key has a daemon and a
 * state folder of its own (`lib/engine-folders.ts`).
 */

import { SallyportError } from './errors.ts';

/** In the order of their hash. The variables that discovery reads, without those that only list places to search. */
const addressVariables = [
  'DOCKER_HOST',
  'DOCKER_CONTEXT',
  'DOCKER_CONFIG',
  'DOCKER_TLS_VERIFY',
  'DOCKER_CERT_PATH',
  'SALLYPORT_ENGINE_DIR',
] as const;

/** The docker context in use, as client and daemon have read it: set by `withCurrentContext`, not by a person. */
const currentContext = 'SALLYPORT_CURRENT_CONTEXT';
/** The name of the context that is none: the engines at their usual places. */
const noContext = 'default';

/** Of an engine that no context leads to. */
export const noCurrentContext: Readonly<Record<string, string>> = { [currentContext]: noContext };

/** Every variable that chooses an engine. */
export const engineVariables: readonly string[] = [...addressVariables, currentContext, 'SALLYPORT_ENGINE'];

/** Accepted names. `auto`: a container engine, or the one that was chosen before on this machine. */
export const engineNames = ['auto', 'docker', 'bubblewrap'] as const;
export type EngineName = (typeof engineNames)[number];

type Variables = Readonly<Record<string, string | undefined>>;

export interface EngineChoice {
  /** `docker`, `docker-1a2b3c4d`, `bubblewrap`: names the daemon and its state folder. */
  readonly key: string;
  /** Reproduce the choice in the environment of a daemon, instead of the client's own `engineVariables`. */
  readonly variables: Readonly<Record<string, string>>;
  /** No engine was named: where no container engine answers, the one that the user chose before may be used. */
  readonly mayFallBack: boolean;
}

export const bubblewrapChoice: EngineChoice = {
  key: 'bubblewrap',
  variables: { SALLYPORT_ENGINE: 'bubblewrap' },
  mayFallBack: false,
};

/** The environment with the context in use, where nothing else names an engine. `read`: its name by docker's own settings. */
export function withCurrentContext(env: Variables, read: () => string | undefined): Variables {
  const isNamed = ['DOCKER_HOST', 'DOCKER_CONTEXT', currentContext].some((name) => (env[name] ?? '') !== '');
  return isNamed ? env : { ...env, [currentContext]: read() ?? noContext };
}

/** `named`: the engine that a flag or a spec names, which wins over SALLYPORT_ENGINE. */
export function engineChoice(env: Variables, named?: EngineName): EngineChoice {
  const name = named === undefined || named === 'auto' ? readEngineName(env) : named;
  if (name === 'bubblewrap') return bubblewrapChoice;
  // Empty is the same as absent, as it is for discovery.
  const address = addressVariables.flatMap((variable) => {
    const value = env[variable] ?? '';
    return value === '' ? [] : [[variable, value] as const];
  });
  const isNamed = address.some(([variable]) => variable === 'DOCKER_HOST' || variable === 'DOCKER_CONTEXT');
  const context = isNamed ? '' : (env[currentContext] ?? '');
  const hashed = ['', noContext].includes(context)
    ? address
    : [...address, [currentContext, context] as const];
  return {
    key: hashed.length === 0 ? 'docker' : `docker-${hashOf(hashed)}`,
    variables: {
      ...Object.fromEntries(address),
      ...(context === '' ? {} : { [currentContext]: context }),
      ...(name === 'docker' ? { SALLYPORT_ENGINE: 'docker' } : {}),
    },
    mayFallBack: name === 'auto' && !isNamed,
  };
}

export function readEngineName(env: Variables): EngineName {
  const value = env['SALLYPORT_ENGINE'] ?? '';
  if (value === '') return 'auto';
  const name = engineNames.find((known) => known === value);
  if (name !== undefined) return name;
  throw new SallyportError('usage', `SALLYPORT_ENGINE is ${JSON.stringify(value)}, which is not an engine`, {
    advice: `Set it to one of ${engineNames.join(', ')}.`,
  });
}

/** FNV-1a, 32 of 64 bits. Both ends belong to one user, so a collision gains nobody anything; a cryptographic hash loads slowly. */
function hashOf(address: readonly (readonly [string, string])[]): string {
  const bytes = Buffer.from(address.map(([name, value]) => `${name}=${value}\0`).join(''));
  let hash = 0xcbf29ce484222325n;
  for (const byte of bytes) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
  return BigInt.asUintN(32, hash ^ (hash >> 32n))
    .toString(16)
    .padStart(8, '0');
}
