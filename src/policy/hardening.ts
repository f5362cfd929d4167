/**
 * What every sandbox gets, decided in one place and pure: the same input always gives the same box, and nothing here
 * touches the world. Capabilities, privileges, namespaces and the log driver are not options, so they are not fields of
 * a box: an engine adapter sets them the same way for all.
 */

import { formatSize } from '../lib/sizes.ts';
import {
  type BoxLimits,
  type BoxRequest,
  type BoxTmpfs,
  smallestDiskBytes,
  smallestMemoryBytes,
} from '../protocol/box.ts';
import { SallyportError } from '../protocol/errors.ts';
import { label } from '../protocol/labels.ts';
import { type Profile, type ProfileName, profiles } from './profiles.ts';

export interface LimitWishes {
  readonly memoryBytes?: number | undefined;
  readonly cpus?: number | undefined;
  readonly pids?: number | undefined;
  readonly nofile?: number | undefined;
  readonly diskBytes?: number | undefined;
}

export interface BoxWish extends LimitWishes {
  readonly name: string;
  readonly image: string;
  readonly porterVolume: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly endsWithHost: boolean;
  readonly profile?: ProfileName;
  readonly env?: Readonly<Record<string, string>>;
  readonly runtime?: string;
}

/** A box with nothing of the host inside. */
export function hardenedBox(wish: BoxWish): BoxRequest {
  const name = wish.profile ?? 'standard';
  const profile = profiles[name];
  const limits = decideLimits(profile, wish);
  return {
    name: wish.name,
    image: wish.image,
    user: profile.user,
    env: wish.env ?? {},
    workingDir: '/tmp',
    labels: { ...wish.labels, ...profileLabels(name) },
    limits,
    tmpfs: memoryFolders(profile, limits),
    mounts: [],
    readOnlyRoot: profile.readOnlyRoot,
    endsWithHost: wish.endsWithHost,
    porterVolume: wish.porterVolume,
    ...(wish.runtime === undefined ? {} : { runtime: wish.runtime }),
  };
}

export function decideLimits(profile: Profile, wish: LimitWishes): BoxLimits {
  const memoryBytes = decide('memory', wish.memoryBytes, profile.memoryBytes, profile, formatSize);
  if (memoryBytes < smallestMemoryBytes) throw tooSmall(memoryBytes);
  const diskBytes = decide('disk', wish.diskBytes, profile.diskBytes, profile, formatSize);
  if (diskBytes < smallestDiskBytes) throw tooSmallDisk(diskBytes);
  return {
    memoryBytes,
    cpus: decide('cpus', wish.cpus, profile.cpus, profile, String),
    pids: decide('pids', wish.pids, profile.pids, profile, String),
    nofile: decide('nofile', wish.nofile, profile.nofile, profile, String),
    shmBytes: Math.floor(memoryBytes / 8),
    diskBytes,
  };
}

/**
 * Memory files count as memory: if they could fill the whole limit, a full /tmp would get every later process killed.
 * Together with shared memory they take at most half.
 */
export function memoryFolders(profile: Profile, limits: BoxLimits): readonly BoxTmpfs[] {
  const mostTmpBytes = Math.floor(limits.memoryBytes / 2) - limits.shmBytes;
  const sizeBytes = Math.min(profile.tmpBytes ?? mostTmpBytes, mostTmpBytes);
  return [{ target: '/tmp', sizeBytes, exec: profile.tmpExec }];
}

export function profileLabels(profile: ProfileName): Readonly<Record<string, string>> {
  return profile === 'strict' ? { [label.sandbox]: 'ephemeral' } : {};
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
    {
      details: { field: `limits.${field}` },
      advice: `Ask for at most ${format(given)}, or use the standard profile.`,
    },
  );
}

function tooSmall(memoryBytes: number): SallyportError {
  return new SallyportError(
    'refused_by_policy',
    `memory ${formatSize(memoryBytes)} is too little to start anything`,
    {
      details: { field: 'limits.memory' },
      advice: `Give at least ${formatSize(smallestMemoryBytes)}; a bare number counts bytes, 512m is 512 MiB.`,
    },
  );
}

function tooSmallDisk(diskBytes: number): SallyportError {
  return new SallyportError(
    'refused_by_policy',
    `disk ${formatSize(diskBytes)} is less than a sandbox needs`,
    {
      details: { field: 'limits.disk' },
      advice: `Give at least ${formatSize(smallestDiskBytes)}; a bare number counts bytes, 40g is 40 GiB.`,
    },
  );
}
