/**
 * The two ways to harden a box. `standard` is for agents and builds; `strict` is for a command that nobody trusts at all:
 * what it allows may be lowered by a wish, never raised.
 */

import { type BoxUser, usualDiskBytes } from '../protocol/box.ts';

export type ProfileName = 'standard' | 'strict';

export interface Profile {
  readonly memoryBytes: number;
  readonly cpus: number;
  readonly pids: number;
  readonly nofile: number;
  readonly diskBytes: number;
  /** Absent: what is left of half the memory after shared memory. */
  readonly tmpBytes?: number;
  readonly tmpExec: boolean;
  readonly readOnlyRoot: boolean;
  readonly user: BoxUser;
  /** Wishes beyond the numbers above are refused. */
  readonly isCeiling: boolean;
}

/**
 * Kernel quotas such as inotify count per uid, so a sandbox without a workspace does not share the host user's. The number
 * after the last one is `relayUid` of protocol/box.ts.
 */
export const firstPoolUid = 64000;
export const poolSize = 256;
const nobody = 65534;

/** A sandbox that nobody uses is stopped after this time, unless its spec says otherwise. */
export const defaultIdleTtlMs = 30 * 60_000;

export const profiles: Readonly<Record<ProfileName, Profile>> = {
  standard: {
    memoryBytes: 4 * 2 ** 30,
    cpus: 2,
    pids: 512,
    nofile: 65536,
    diskBytes: usualDiskBytes,
    // Builds and test runners execute from /tmp.
    tmpExec: true,
    readOnlyRoot: false,
    user: { uid: firstPoolUid, gid: firstPoolUid },
    isCeiling: false,
  },
  strict: {
    memoryBytes: 256 * 2 ** 20,
    cpus: 0.5,
    pids: 100,
    nofile: 65536,
    diskBytes: usualDiskBytes,
    tmpBytes: 64 * 2 ** 20,
    tmpExec: false,
    readOnlyRoot: true,
    user: { uid: nobody, gid: nobody },
    isCeiling: true,
  },
};
