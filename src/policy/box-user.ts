/**
 * Who a sandbox runs as (G6, A11). Never root: neither user nor group is ever 0, whatever the host is.
 *
 * A folder of the host that is writable inside must stay writable for that user, and what is made in it must belong to the
 * host's user afterwards. So its presence decides: with one, the host's uid:gid; without one, a uid that no other sandbox has.
 */

import { type BoxUser, relayUid } from '../protocol/box.ts';
import { SallyportError } from '../protocol/errors.ts';
import { firstPoolUid, type ProfileName, poolSize, profiles } from './profiles.ts';

export interface UserFacts {
  readonly host: { readonly uid: number; readonly gid: number; readonly platform: string };
  readonly engine: { readonly name: string; readonly rootless: boolean };
  /** Of the pool, and not in use by another sandbox. */
  readonly freeUid: number;
}

export interface OwnedPath {
  readonly field: string;
  readonly path: string;
  readonly uid: number;
  readonly gid: number;
}

export interface UserWish {
  readonly profile: ProfileName;
  /** `uid:gid`. */
  readonly user?: string | undefined;
  /** Everything of the host that is to be writable inside; the workspace first. */
  readonly shared: readonly OwnedPath[];
}

export interface UserNote {
  readonly code: string;
  readonly message: string;
}

export interface DecidedUser {
  readonly user: BoxUser & { readonly home: string };
  /** Nobody else may get this uid while the sandbox exists. */
  readonly fromPool: boolean;
  readonly mapping?: 'keep-id';
  readonly notes: readonly UserNote[];
}

/** The last is (uid_t) -1, which means "leave it" to the kernel. */
const mostId = 2 ** 32 - 2;
/** Of every sandbox that is not strict. */
export const userHome = '/home/sally';
const home = userHome;

export function decideUser(wish: UserWish, facts: UserFacts): DecidedUser {
  const decided = wantedUser(wish, facts);
  const { uid, gid } = decided.user;
  if (uid !== relayUid) return decided;
  throw refuse(
    'user',
    `user ${uid}:${gid}: inside every sandbox ${relayUid} is the user of porter's relay, which programs may not trace`,
    'Name another user (`--user uid:gid`), or use a copy (`--workspace-mode copy`).',
  );
}

function wantedUser(wish: UserWish, facts: UserFacts): DecidedUser {
  if (wish.profile === 'strict') return strictUser(wish);
  const [first] = wish.shared;
  if (first !== undefined && facts.engine.rootless) return rootlessUser(wish, first, facts);
  if (wish.user !== undefined) return explicitUser(wish.user, wish.shared);
  if (first === undefined) return poolUser(facts, []);
  if (facts.host.platform === 'darwin') {
    return poolUser(facts, [
      note(
        'user_shared_folder',
        'on this host every user inside may write to shared folders; files there belong to you',
      ),
    ]);
  }
  if (facts.host.uid === 0) return ownerOf(wish.shared, first);
  return hostUser(facts);
}

const note = (code: string, message: string): UserNote => ({ code, message });

function strictUser({ user }: UserWish): DecidedUser {
  if (user !== undefined) {
    throw refuse(
      'user',
      `user ${user}: the strict profile always runs as nobody (65534:65534)`,
      'Leave `user` out, or use the standard profile.',
    );
  }
  return { user: { ...profiles.strict.user, home: '/tmp' }, fromPool: false, notes: [] };
}

function poolUser({ freeUid }: UserFacts, notes: readonly UserNote[]): DecidedUser {
  if (freeUid < firstPoolUid || freeUid >= firstPoolUid + poolSize) {
    throw new RangeError(`uid ${freeUid} is not of the pool`);
  }
  return { user: { uid: freeUid, gid: freeUid, home }, fromPool: true, notes };
}

function explicitUser(text: string, shared: readonly OwnedPath[]): DecidedUser {
  const [uid = 0, gid = 0] = text.split(':').map(Number);
  if (uid === 0 || gid === 0) {
    throw refuse(
      'user',
      `user ${text}: a sandbox never runs as root, neither as its user nor in its group`,
      'Give a uid:gid without 0, such as 1000:1000.',
    );
  }
  if (uid > mostId || gid > mostId) {
    throw refuse(
      'user',
      `user ${text}: no user or group has a number above ${mostId}`,
      'Give a uid:gid such as 1000:1000.',
    );
  }
  const foreign = shared.find((path) => path.uid !== uid);
  const notes =
    foreign === undefined
      ? []
      : [
          note(
            'user_not_owner',
            `${foreign.path} belongs to ${foreign.uid}:${foreign.gid}, so ${text} may not be able to write to it`,
          ),
        ];
  return { user: { uid, gid, home }, fromPool: false, notes };
}

function hostUser({ host }: UserFacts): DecidedUser {
  if (host.gid !== 0) return { user: { uid: host.uid, gid: host.gid, home }, fromPool: false, notes: [] };
  const message = `your group is root's (0), which no sandbox gets: the group inside is ${host.uid}`;
  return {
    user: { uid: host.uid, gid: host.uid, home },
    fromPool: false,
    notes: [note('user_group_root', message)],
  };
}

/** The host's user is root, so the sandbox runs as whoever owns what it may write to. */
function ownerOf(shared: readonly OwnedPath[], { uid, gid }: OwnedPath): DecidedUser {
  const odd = shared.find((path) => path.uid === 0 || path.gid === 0 || path.uid !== uid || path.gid !== gid);
  if (odd === undefined) {
    const message = `you are root, which no sandbox is: it runs as the owner of the folder, ${uid}:${gid}`;
    return { user: { uid, gid, home }, fromPool: false, notes: [note('user_owner', message)] };
  }
  const isRoots = odd.uid === 0 || odd.gid === 0;
  const why = isRoots
    ? `belongs to root (${odd.uid}:${odd.gid}), and a sandbox never runs as root`
    : `belongs to ${odd.uid}:${odd.gid} and the first folder to ${uid}:${gid}, and a sandbox has one user`;
  throw refuse(
    odd.field,
    `${odd.field}: ${odd.path} ${why}`,
    'Use a copy (`--workspace-mode copy`), name the user (`--user uid:gid`), give the folder to an ordinary user ' +
      '(`chown -R uid:gid`), or run sally as an ordinary user.',
  );
}

/** Container uid 0 is the host's user here, so any other uid inside is a stranger to the user's files. */
function rootlessUser(wish: UserWish, first: OwnedPath, facts: UserFacts): DecidedUser {
  const { host, engine } = facts;
  if (engine.name !== 'podman') {
    throw refuse(
      first.field,
      `${first.field}: ${first.path} would belong to root inside, because this ${engine.name} is rootless, and a sandbox never runs as root`,
      'Use a copy (`--workspace-mode copy`) or read-only access (`--workspace-mode readonly`), a rootful engine, or rootless Podman, which can map users.',
    );
  }
  const decided = hostUser(facts);
  const { uid, gid } = decided.user;
  if (wish.user !== undefined && wish.user !== `${uid}:${gid}`) {
    throw refuse(
      'user',
      `user ${wish.user}: on rootless Podman only you (${host.uid}:${host.gid}) can write to ${first.path}`,
      'Leave `user` out, or use a copy (`--workspace-mode copy`).',
    );
  }
  return { ...decided, mapping: 'keep-id' };
}

function refuse(field: string, message: string, advice: string): SallyportError {
  return new SallyportError('refused_by_policy', message, { details: { field }, advice });
}
