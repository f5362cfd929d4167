/**
 * What every sandbox gets, decided in one place and pure: the same input always gives the same box, and nothing here
 * touches the world. Capabilities, privileges, namespaces and the log driver are not options, so they are not fields of
 * a box: an engine adapter sets them the same way for all.
 */

import type { BoxLimits, BoxRequest, BoxTmpfs, BoxUser } from '../protocol/box.ts';

/** Kernel quotas such as inotify count per uid, so a sandbox without a workspace does not share the host user's. */
export const firstPoolUid = 64000;

export const standardLimits = {
  memoryBytes: 4 * 2 ** 30,
  cpus: 2,
  pids: 512,
  nofile: 65536,
} as const;

export interface BoxWish {
  readonly name: string;
  readonly image: string;
  readonly porterVolume: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly endsWithHost: boolean;
  readonly env?: Readonly<Record<string, string>>;
  readonly user?: BoxUser;
  readonly runtime?: string;
  readonly memoryBytes?: number;
  readonly cpus?: number;
  readonly pids?: number;
}

/**
 * Memory files count as memory: if they could fill the whole limit, a full /tmp would get every later process killed.
 * Together they take at most half.
 */
function memoryFiles(memoryBytes: number): { readonly tmpBytes: number; readonly shmBytes: number } {
  const shmBytes = Math.floor(memoryBytes / 8);
  return { shmBytes, tmpBytes: Math.floor(memoryBytes / 2) - shmBytes };
}

export function standardBox(wish: BoxWish): BoxRequest {
  const memoryBytes = wish.memoryBytes ?? standardLimits.memoryBytes;
  const { tmpBytes, shmBytes } = memoryFiles(memoryBytes);
  const limits: BoxLimits = {
    memoryBytes,
    cpus: wish.cpus ?? standardLimits.cpus,
    pids: wish.pids ?? standardLimits.pids,
    nofile: standardLimits.nofile,
    shmBytes,
  };
  const tmp: BoxTmpfs = { target: '/tmp', sizeBytes: tmpBytes, exec: true };
  return {
    name: wish.name,
    image: wish.image,
    user: wish.user ?? { uid: firstPoolUid, gid: firstPoolUid },
    env: wish.env ?? {},
    workingDir: '/tmp',
    labels: wish.labels,
    limits,
    tmpfs: [tmp],
    readOnlyRoot: false,
    endsWithHost: wish.endsWithHost,
    porterVolume: wish.porterVolume,
    ...(wish.runtime === undefined ? {} : { runtime: wish.runtime }),
  };
}
