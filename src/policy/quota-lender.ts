/**
 * Whose kernel quotas a sandbox uses up (N22). The kernel counts epoll and inotify watches by uid. A sandbox that runs as the host's user
 * borrows the instances they belong to from a process inside that has a uid of the pool: the lender.
 */

import type { BoxUser } from '../protocol/box.ts';
import type { DecidedUser, UserFacts } from './box-user.ts';
import type { ProfileName } from './profiles.ts';

export interface LenderFacts extends UserFacts {
  readonly engine: UserFacts['engine'] & { readonly defaultRuntime: string };
}

export interface LenderWish {
  readonly profile: ProfileName;
  readonly runtime: string | undefined;
}

/** Somebody outside has the same uid and the same kernel. */
export function sharesQuotas(
  { profile, runtime }: LenderWish,
  { fromPool }: Pick<DecidedUser, 'fromPool'>,
  { engine, host }: LenderFacts,
): boolean {
  // The user of the strict profile is nobody's.
  if (fromPool || profile === 'strict' || host.platform !== 'linux') return false;
  return engine.name === 'bubblewrap' || sharesKernel(runtime ?? engine.defaultRuntime);
}

/** Undefined: the quotas are the sandbox's own, or nothing can lend it others. */
export function quotaLender(
  wish: LenderWish,
  decided: Pick<DecidedUser, 'fromPool' | 'user'>,
  facts: LenderFacts,
): BoxUser | undefined {
  const { engine, freeUid } = facts;
  // SECURITY: porter's filter does not hold the lender. A program of the same user could trace it.
  if (decided.user.uid === freeUid) return undefined;
  // In a user namespace of the host user's every uid counts for that user.
  const hasOtherUsers = engine.name !== 'bubblewrap' && !engine.rootless;
  return hasOtherUsers && sharesQuotas(wish, decided, facts) ? { uid: freeUid, gid: freeUid } : undefined;
}

/** gVisor and virtual machines have a kernel, and so quotas, of their own. */
const sharesKernel = (runtime: string): boolean => /(?:^|[./-])(?:runc|crun)(?:$|[./-])/.test(runtime);
