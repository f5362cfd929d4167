/**
 * From what was asked for to what a sandbox gets. Pure: everything about the machine is handed in, and the same input gives
 * the same plan. Whatever is refused is refused here, before anything is made.
 */

import type { BoxLimits, BoxMount, BoxRequest, BoxTmpfs } from '../protocol/box.ts';
import { SallyportError } from '../protocol/errors.ts';
import type { Spec } from '../protocol/spec.ts';
import { type DecidedUser, decideUser, type OwnedPath, type UserFacts, type UserNote } from './box-user.ts';
import { type HostPlaces, requireAllowedSource } from './forbidden-sources.ts';
import { decideLimits, memoryFolders, profileLabels } from './hardening.ts';
import { plainPath } from './paths.ts';
import { type ProfileName, profiles } from './profiles.ts';
import { requireFreeTargets, type Target, targetOf } from './targets.ts';

/** A path of the spec as the host's file system has it. */
export interface PathFacts {
  /** What the path itself is, without following it: `symlink` for a link to whatever. */
  readonly kind: 'file' | 'directory' | 'symlink' | 'other' | 'missing';
  /** All links followed; the path itself where it is missing. */
  readonly real: string;
  /** What is at `real`; the kind of the path itself unless that is a link. */
  readonly realKind: 'file' | 'directory' | 'other' | 'missing';
  /** Of what is at `real`. */
  readonly uid: number;
  readonly gid: number;
}

export interface PlanFacts extends UserFacts {
  readonly places: HostPlaces;
  readonly workspace?: PathFacts;
  /** As many as the spec has, in its order. */
  readonly mounts: readonly PathFacts[];
}

export interface BoxPlan {
  readonly profile: ProfileName;
  readonly limits: BoxLimits;
  readonly user: DecidedUser['user'];
  /** Its uid is taken from the pool as long as the sandbox exists. */
  readonly usesPool: boolean;
  readonly userMapping?: 'keep-id';
  readonly workdir: string;
  /** With the workspace, unless that is copied. */
  readonly mounts: readonly BoxMount[];
  /** To be copied in before the sandbox is ready. */
  readonly copy?: { readonly source: string; readonly target: string };
  /** Sockets of the host that are wanted inside. */
  readonly sockets?: readonly { readonly id: 'ssh-agent' }[];
  readonly tmpfs: readonly BoxTmpfs[];
  readonly readOnlyRoot: boolean;
  readonly labels: Readonly<Record<string, string>>;
  readonly runtime?: string;
  /** What the one who asked should know. */
  readonly notes: readonly UserNote[];
}

export interface BoxIdentity {
  /** Of the container. */
  readonly name: string;
  /** As it is to be run: with the user's entry and home. */
  readonly image: string;
  readonly porterVolume: string;
  /** Ours; they win over those of the spec. */
  readonly labels: Readonly<Record<string, string>>;
  readonly endsWithHost: boolean;
}

export function planBox(spec: Spec, facts: PlanFacts): BoxPlan {
  const profileName = spec.profile ?? 'standard';
  const profile = profiles[profileName];
  const { memory: memoryBytes, cpus, pids, nofile } = spec.limits ?? {};
  const limits = decideLimits(profile, { memoryBytes, cpus, pids, nofile });
  if (profileName === 'strict') refuseWritable(spec);
  const sources = judgedSources(spec, facts);
  const decided = decideUser(
    { profile: profileName, user: spec.user, shared: sources.filter(isShared).map(owned) },
    facts,
  );
  requireFreeTargets(
    sources.map(({ target }) => target),
    decided.user.home,
  );
  const copied = sources.find(({ how }) => how === 'copy');
  return {
    profile: profileName,
    limits,
    user: decided.user,
    usesPool: decided.fromPool,
    workdir: plainPath(spec.workdir ?? spec.workspace?.target ?? decided.user.home),
    mounts: sources
      .filter(({ how }) => how !== 'copy')
      .map(({ real, target, how }) => ({ source: real, target: target.path, writable: how === 'writable' })),
    tmpfs: memoryFolders(profile, limits),
    readOnlyRoot: profile.readOnlyRoot,
    labels: { ...spec.labels, ...profileLabels(profileName) },
    notes: [...decided.notes, ...readonlyNotes(spec, sources, decided)],
    ...(copied === undefined ? {} : { copy: { source: copied.real, target: copied.target.path } }),
    ...(decided.mapping === undefined ? {} : { userMapping: decided.mapping }),
    ...(spec.runtime === undefined ? {} : { runtime: spec.runtime }),
  };
}

/** The request to the engine. `envs` are no part of it: they belong to execs, and what an engine knows others can read. */
export function plannedBox(plan: BoxPlan, identity: BoxIdentity): BoxRequest {
  const { uid, gid } = plan.user;
  return {
    name: identity.name,
    image: identity.image,
    porterVolume: identity.porterVolume,
    endsWithHost: identity.endsWithHost,
    labels: { ...plan.labels, ...identity.labels },
    user: { uid, gid },
    env: {},
    workingDir: plan.workdir,
    limits: plan.limits,
    tmpfs: plan.tmpfs,
    mounts: plan.mounts,
    readOnlyRoot: plan.readOnlyRoot,
    ...(plan.userMapping === undefined ? {} : { userMapping: plan.userMapping }),
    ...(plan.runtime === undefined ? {} : { runtime: plan.runtime }),
  };
}

interface Source {
  readonly field: string;
  readonly given: string;
  readonly real: string;
  readonly uid: number;
  readonly gid: number;
  readonly how: 'writable' | 'readonly' | 'copy';
  readonly target: Target;
}

const isShared = ({ how }: Source): boolean => how === 'writable';
const owned = ({ field, real, uid, gid }: Source): OwnedPath => ({ field, path: real, uid, gid });

function judgedSources(spec: Spec, facts: PlanFacts): readonly Source[] {
  const sources = [...workspaceSource(spec, facts), ...mountSources(spec, facts)];
  for (const source of sources) {
    requireAllowedSource(source.field, { ...source, writable: source.how === 'writable' }, facts.places);
  }
  return sources;
}

function workspaceSource(spec: Spec, facts: PlanFacts): readonly Source[] {
  const { workspace } = spec;
  if (workspace === undefined) return [];
  if (facts.workspace === undefined) throw new RangeError('there are no facts of the workspace');
  const { real, realKind, uid, gid } = facts.workspace;
  const field = 'workspace.path';
  // A link is followed: a shell's working directory often is one, and its real path is what is judged and mounted.
  if (realKind === 'missing') throw missing(field, workspace.path);
  if (realKind !== 'directory') {
    throw refuse(
      field,
      `${field}: ${workspace.path} is no folder`,
      'A workspace is a folder; give a single file with `mounts`.',
    );
  }
  const how = workspace.mode === 'live' ? 'writable' : workspace.mode;
  const target = targetOf('workspace.target', workspace.target);
  return [{ field, given: workspace.path, real, uid, gid, how, target }];
}

function mountSources(spec: Spec, facts: PlanFacts): readonly Source[] {
  return (spec.mounts ?? []).map((mount, index) => {
    const found = facts.mounts[index];
    if (found === undefined) throw new RangeError(`there are no facts of mount ${index}`);
    const field = `mounts.${index}.source`;
    if (found.kind === 'missing') throw missing(field, mount.source);
    if (found.kind === 'symlink') {
      throw refuse(
        field,
        `${field}: ${mount.source} is a symbolic link, to ${found.real}`,
        `Name what it leads to: ${found.real}`,
      );
    }
    if (found.kind === 'other') {
      throw refuse(
        field,
        `${field}: ${mount.source} is neither a file nor a folder`,
        'Sockets, devices and pipes of the host are never given to a sandbox.',
      );
    }
    return {
      field,
      given: mount.source,
      real: found.real,
      uid: found.uid,
      gid: found.gid,
      how: mount.writable ? 'writable' : 'readonly',
      target: targetOf(`mounts.${index}.target`, mount.target),
    };
  });
}

/** A copy needs a place to write to that the strict profile's read-only root and its 64 MiB of /tmp do not have. */
function refuseWritable(spec: Spec): void {
  if (spec.workspace !== undefined && spec.workspace.mode !== 'readonly') {
    throw refuse(
      'workspace.mode',
      `workspace.mode: ${spec.workspace.mode} is writable inside, and the strict profile allows no writable folder but /tmp`,
      'Use `mode: readonly`, leave the workspace out, or use the standard profile.',
    );
  }
  const index = (spec.mounts ?? []).findIndex(({ writable }) => writable);
  if (index === -1) return;
  throw refuse(
    `mounts.${index}.writable`,
    `mounts.${index}.writable: the strict profile allows no writable mount`,
    'Leave `writable` out, or use the standard profile.',
  );
}

function readonlyNotes(spec: Spec, sources: readonly Source[], decided: DecidedUser): readonly UserNote[] {
  const { uid } = decided.user;
  const foreign = sources.find((source) => source.how === 'readonly' && source.uid !== uid);
  if (foreign === undefined || spec.user !== undefined || decided.mapping !== undefined) return [];
  const message = `${foreign.real} is read as user ${uid}: files in it that only their owner may read stay unreadable`;
  return [{ code: 'readonly_as_stranger', message }];
}

function missing(field: string, path: string): SallyportError {
  return refuse(
    field,
    `${field}: there is no ${path} on this host`,
    'Check the path, or make the folder first.',
  );
}

function refuse(field: string, message: string, advice: string): SallyportError {
  return new SallyportError('refused_by_policy', message, { details: { field }, advice });
}
