/** What the process environment says about sandboxes, read once at the edge and passed on as data. */

import { homedir } from 'node:os';
import { join } from 'node:path';
import { SallyportError } from '../protocol/errors.ts';
import type { SpecFragment, SpecSource } from './spec-source.ts';

export interface ConfigEnvironment {
  readonly home: string;
  readonly userFile: string;
  readonly stateDir: string;
  /** SALLYPORT_APPROVE_PROJECT=1: whoever set it has read the project file. */
  readonly approveProject: boolean;
  readonly source: SpecSource;
  /** As it was written: `guardImage` of guard-image.ts checks it. */
  readonly guardImage?: string;
}

interface Variable {
  readonly name: string;
  /** The field of the spec that it sets. */
  readonly field: string;
  readonly meaning: string;
  readonly read: (text: string) => SpecFragment;
}

const microsecondsPerPeriod = 100_000;

/** Sets `guard.image`, which is no field of a spec. */
export const guardImageVariable = 'SALLYPORT_GUARD_IMAGE';

/** `docs/config.md` is made from this table. An empty variable counts as absent. */
export const specVariables: readonly Variable[] = [
  { name: 'SALLYPORT_IMAGE', field: 'image', meaning: 'the image', read: (image) => ({ image }) },
  {
    name: 'SALLYPORT_DEFAULT_IMAGE',
    field: 'images.default',
    meaning: 'the image where nothing else names one',
    read: (image) => ({ images: { default: image } }),
  },
  {
    name: 'SALLYPORT_STRICT_IMAGE',
    field: 'images.strict',
    meaning: 'the same with `profile: strict`',
    read: (image) => ({ images: { strict: image } }),
  },
  {
    name: 'SALLYPORT_MEM',
    field: 'limits.memory',
    meaning: 'memory, such as 512m or 4g',
    read: (memory) => ({ limits: { memory } }),
  },
  {
    name: 'SALLYPORT_CPU_QUOTA',
    field: 'limits.cpus',
    meaning: 'processor time in µs per period of 100000 µs; 200000 is two processors',
    read: (text) => ({ limits: { cpus: wholeNumber('SALLYPORT_CPU_QUOTA', text) / microsecondsPerPeriod } }),
  },
  {
    name: 'SALLYPORT_PIDS',
    field: 'limits.pids',
    meaning: 'processes and threads',
    read: (text) => ({ limits: { pids: wholeNumber('SALLYPORT_PIDS', text) } }),
  },
  {
    name: 'SALLYPORT_NOFILE',
    field: 'limits.nofile',
    meaning: 'open files of a process',
    read: (text) => ({ limits: { nofile: wholeNumber('SALLYPORT_NOFILE', text) } }),
  },
  {
    name: 'SALLYPORT_DISK',
    field: 'limits.disk',
    meaning: 'disk limit, such as 20g',
    read: (disk) => ({ limits: { disk } }),
  },
  {
    name: 'SALLYPORT_PROFILE',
    field: 'profile',
    meaning: 'standard or strict',
    // The schema judges it together with everything else.
    read: (profile) => ({ profile: profile as 'standard' }),
  },
  {
    name: 'SALLYPORT_RUNTIME',
    field: 'runtime',
    meaning: 'the container runtime, or strongest',
    read: (runtime) => ({ runtime }),
  },
  { name: 'SALLYPORT_USER', field: 'user', meaning: 'uid:gid', read: (user) => ({ user }) },
  {
    name: 'SALLYPORT_IDLE_TTL',
    field: 'idle_ttl',
    meaning: 'time without use until it is stopped, such as 30m, or never',
    read: (ttl) => ({ idle_ttl: ttl }),
  },
  {
    name: 'SALLYPORT_MAX_LIFETIME',
    field: 'max_lifetime',
    meaning: 'time until it is stopped whatever runs, or never',
    read: (lifetime) => ({ max_lifetime: lifetime }),
  },
];

export function readConfigEnvironment(env: NodeJS.ProcessEnv = process.env): ConfigEnvironment {
  const set = (name: string): string | undefined => (env[name] === '' ? undefined : env[name]);
  const home = set('HOME') ?? homedir();
  const configHome = set('XDG_CONFIG_HOME') ?? join(home, '.config');
  const guardImage = set(guardImageVariable);
  const stateHome = set('XDG_STATE_HOME') ?? join(home, '.local', 'state');
  return {
    home,
    userFile: join(configHome, 'sallyport', 'config.yaml'),
    stateDir: set('SALLYPORT_STATE_DIR') ?? join(stateHome, 'sallyport'),
    approveProject: set('SALLYPORT_APPROVE_PROJECT') === '1',
    source: environmentSource(set),
    ...(guardImage === undefined ? {} : { guardImage }),
  };
}

function environmentSource(set: (name: string) => string | undefined): SpecSource {
  let fragment: SpecFragment = {};
  const names: Record<string, string> = {};
  for (const { name, field, read } of specVariables) {
    const text = set(name);
    if (text === undefined) continue;
    const part = read(text);
    const limits = { ...fragment.limits, ...part.limits };
    const images = { ...fragment.images, ...part.images };
    fragment = {
      ...fragment,
      ...part,
      ...(Object.keys(limits).length === 0 ? {} : { limits }),
      ...(Object.keys(images).length === 0 ? {} : { images }),
    };
    names[field] = name;
  }
  return { kind: 'environment', fragment, names };
}

function wholeNumber(name: string, text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new SallyportError(
    'config_invalid',
    `${name} (${JSON.stringify(text.slice(0, 60))}) must be a whole number`,
    {
      details: { variable: name },
      advice: `Set ${name} to a whole number, or unset it.`,
    },
  );
}
