/**
 * What every sandbox gets, decided in one place and pure: the same input always gives the same box, and nothing here
 * touches the world. Capabilities, privileges, namespaces and the log driver are not options, so they are not fields of
 * a box: an engine adapter sets them the same way for all.
 */

import { formatSize } from '../lib/sizes.ts';
import type { BoxLimits, BoxRequest, BoxTmpfs } from '../protocol/box.ts';
import { SallyportError } from '../protocol/errors.ts';
import { label } from '../protocol/labels.ts';
import { type Profile, type ProfileName, profiles } from './profiles.ts';

export interface BoxWish {
  readonly name: string;
  readonly image: string;
  readonly porterVolume: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly endsWithHost: boolean;
  readonly profile?: ProfileName;
  readonly env?: Readonly<Record<string, string>>;
  readonly runtime?: string;
  readonly memoryBytes?: number;
  readonly cpus?: number;
  readonly pids?: number;
}

/** Below this no engine starts a container, and no interpreter starts in one. */
const smallestMemoryBytes = 16 * 2 ** 20;

export function hardenedBox(wish: BoxWish): BoxRequest {
  const name = wish.profile ?? 'standard';
  const profile = profiles[name];
  const memoryBytes = decide('memory', wish.memoryBytes, profile.memoryBytes, profile, formatSize);
  if (memoryBytes < smallestMemoryBytes) throw tooSmall(memoryBytes);
  const shmBytes = Math.floor(memoryBytes / 8);
  const limits: BoxLimits = {
    memoryBytes,
    cpus: decide('cpus', wish.cpus, profile.cpus, profile, String),
    pids: decide('pids', wish.pids, profile.pids, profile, String),
    nofile: profile.nofile,
    shmBytes,
  };
  // Memory files count as memory: if they could fill the whole limit, a full /tmp would get every later process killed.
  // Together they take at most half.
  const mostTmpBytes = Math.floor(memoryBytes / 2) - shmBytes;
  const tmpBytes = Math.min(profile.tmpBytes ?? mostTmpBytes, mostTmpBytes);
  const tmp: BoxTmpfs = { target: '/tmp', sizeBytes: tmpBytes, exec: profile.tmpExec };
  return {
    name: wish.name,
    image: wish.image,
    user: profile.user,
    env: wish.env ?? {},
    workingDir: '/tmp',
    labels: name === 'strict' ? { ...wish.labels, [label.sandbox]: 'ephemeral' } : wish.labels,
    limits,
    tmpfs: [tmp],
    mounts: [],
    readOnlyRoot: profile.readOnlyRoot,
    endsWithHost: wish.endsWithHost,
    porterVolume: wish.porterVolume,
    ...(wish.runtime === undefined ? {} : { runtime: wish.runtime }),
  };
}

function decide(
  field: string,
  wished: number | undefined,
  given: number,
  profile: Profile,
  format: (value: number) => string,
): number {
  if (wished === undefined) return given;
  if (!profile.isCeiling || wished <= given) return wished;
  throw new SallyportError(
    'refused_by_policy',
    `${field} ${format(wished)} is more than the strict profile allows (${format(given)})`,
    { details: { field }, advice: `Ask for at most ${format(given)}, or use the standard profile.` },
  );
}

function tooSmall(memoryBytes: number): SallyportError {
  return new SallyportError(
    'refused_by_policy',
    `memory ${formatSize(memoryBytes)} is too little to start anything`,
    {
      details: { field: 'memory' },
      advice: `Give at least ${formatSize(smallestMemoryBytes)}; a bare number counts bytes, 512m is 512 MiB.`,
    },
  );
}
