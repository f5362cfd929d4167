/**
 * From what was asked for to what a sandbox gets. Pure: everything about the machine is handed in, and the same input gives
 * the same plan. Whatever is refused is refused here, before anything is made.
 */

import type { BoxLimits, BoxMount, BoxNetwork, BoxRequest, BoxTmpfs, BoxUser } from '../protocol/box.ts';
import { isSallyportError } from '../protocol/errors.ts';
import type { Spec } from '../protocol/spec.ts';
import { type DecidedUser, decideUser, type OwnedPath, type UserNote } from './box-user.ts';
import type { PlannedSocket } from './builtin-tools.ts';
import { copySources, missing, type PlannedCopy, plannedCopies, realSource, refuse } from './copy-sources.ts';
import { decideEgress } from './egress/decide-egress.ts';
import { type HostPlaces, requireAllowedSource } from './forbidden-sources.ts';
import { type NoWorktree, type WorktreeLook, type WorktreeMounts, worktreeMounts } from './git-worktree.ts';
import { decideLimits, memoryFolders, profileLabels } from './hardening.ts';
import type { Stub } from './held-paths.ts';
import { plainPath } from './paths.ts';
import { type ProfileName, profiles } from './profiles.ts';
import { requireNoProgram } from './program-paths.ts';
import { type Protection, protectWorkspace, type WorkspaceLook } from './protected-paths.ts';
import { type LenderFacts, quotaLender, sharesQuotas } from './quota-lender.ts';
import { requireFreeTargets, type Target, targetOf } from './targets.ts';
import { type PlannedShadow, type ToolFacts, type ToolFolder, toolSources } from './tool-sources.ts';

/** A path of the spec as the host's file system has it. */
export interface PathFacts {
  /** What the path itself is, without following it: `symlink` for a link to whatever. */
  readonly kind: 'file' | 'directory' | 'symlink' | 'other' | 'missing';
  /** All links followed; the path itself where it is missing. */
  readonly real: string;
  /** The first link on the way that is not root's: whoever may write there, such as a sandbox, decides where it leads. */
  readonly link?: string;
  /** What is at `real`; the kind of the path itself unless that is a link. */
  readonly realKind: 'file' | 'directory' | 'other' | 'missing';
  /** Of what is at `real`. */
  readonly uid: number;
  readonly gid: number;
}

export interface PlanFacts extends LenderFacts {
  readonly places: HostPlaces;
  readonly workspace?: PathFacts;
  /** As many as the spec has, in its order. */
  readonly mounts: readonly PathFacts[];
  readonly copies?: readonly PathFacts[];
  /** Of what the built-in tools of the spec bring. */
  readonly tools?: readonly ToolFacts[];
  /** Of a live workspace. */
  readonly inWorkspace?: WorkspaceLook;
  /** Of a workspace whose `.git` points elsewhere, unless it is copied. */
  readonly worktree?: WorktreeLook | NoWorktree;
}

export interface BoxPlan {
  readonly profile: ProfileName;
  readonly limits: BoxLimits;
  readonly user: DecidedUser['user'];
  /** The host's user, whom programs inside are told. Absent: the strict profile, or a record of an older version. */
  readonly hostUser?: BoxUser;
  /** Its uid is taken from the pool as long as the sandbox exists. */
  readonly usesPool: boolean;
  readonly userMapping?: 'keep-id';
  /** Somebody outside has the same uid and the same kernel, and so the same quotas. */
  readonly sharesQuotas?: true;
  /** Its uid is of the pool as well: see `quota-lender.ts`. */
  readonly lender?: BoxUser;
  readonly workdir: string;
  /** With the workspace, unless that is copied. Parents before children. */
  readonly mounts: readonly BoxMount[];
  /** To be copied in before the sandbox is ready, in this order. */
  readonly copies: readonly PlannedCopy[];
  /** Copies of tools' folders in the state folder; `placeShadows` puts them among the mounts. */
  readonly shadows: readonly PlannedShadow[];
  /** Sockets of the host that tools want inside. */
  readonly sockets: readonly PlannedSocket[];
  /** What must be on the host for the mounts that protect a live workspace or a tool's folder, and may be missing. */
  readonly stubs?: readonly Stub[];
  /** Places of the host in a tool's folder that are hidden inside by a folder of the sandbox's own. */
  readonly covered?: readonly { readonly source: string; readonly target: string }[];
  /** Tools' folders that are writable inside, with what the host executes in them held. */
  readonly toolFolders?: readonly ToolFolder[];
  /** Tools in mode `shared`: nothing is held in their folders. */
  readonly sharedTools?: readonly string[];
  /** Of a live worktree: where its repository keeps what belongs to it. */
  readonly worktreeDir?: string;
  /** What the host would execute and the sandbox may write to, by request. */
  readonly unprotected?: readonly string[];
  /** Relative paths in a live workspace that hold Sallyport's own program. */
  readonly programs?: readonly string[];
  readonly tmpfs: readonly BoxTmpfs[];
  readonly readOnlyRoot: boolean;
  readonly labels: Readonly<Record<string, string>>;
  readonly runtime?: string;
  /** Candidates of `runtime: strongest`, strongest first, until one of them is chosen (`strongest-runtime.ts`). */
  readonly runtimes?: readonly string[];
  /** There is a gate, and porter listens for it inside. */
  readonly egress?: true;
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
  /** Of its services. */
  readonly network?: BoxNetwork | undefined;
}

export function planBox(spec: Spec, facts: PlanFacts): BoxPlan {
  const profileName = spec.profile ?? 'standard';
  const profile = profiles[profileName];
  const { memory: memoryBytes, cpus, pids, nofile, disk: diskBytes } = spec.limits ?? {};
  const limits = decideLimits(profile, { memoryBytes, cpus, pids, nofile, diskBytes });
  if (profileName === 'strict') refuseWritable(spec);
  const egress = decideEgress(spec);
  const given = judgedSources(spec, facts);
  const tools = toolSources(spec, facts.tools ?? [], facts.places);
  const sources = [...given, ...tools.sources];
  const decided = decideUser(
    { profile: profileName, user: spec.user, shared: sources.filter(isShared).map(owned) },
    facts,
  );
  requireFreeTargets(
    sources.map(({ target }) => target),
    decided.user.home,
  );
  const quotas = { profile: profileName, runtime: spec.runtime };
  const lender = quotaLender(quotas, decided, facts);
  const protection = protectionOf(spec, given, facts);
  const worktree = worktreeOf(spec, sources, decided.user.home, facts);
  const provided = worktree === undefined || 'because' in worktree ? undefined : worktree;
  return {
    profile: profileName,
    limits,
    user: decided.user,
    usesPool: decided.fromPool,
    workdir: plainPath(spec.workdir ?? spec.workspace?.target ?? decided.user.home),
    mounts: [
      ...[...given, ...tools.sources.filter(({ isShadow }) => !isShadow)]
        .filter(({ how }) => how !== 'copy')
        .map(({ real, target, how }) => ({
          source: real,
          target: target.path,
          writable: how === 'writable',
        })),
      ...(protection?.mounts ?? []),
      ...(provided?.mounts ?? []),
      ...tools.mounts,
    ],
    copies: plannedCopies(spec, given),
    shadows: tools.shadows,
    sockets: tools.sockets,
    tmpfs: memoryFolders(profile, limits),
    readOnlyRoot: profile.readOnlyRoot,
    labels: { ...spec.labels, ...profileLabels(profileName) },
    notes: [
      ...decided.notes,
      ...readonlyNotes(spec, sources, decided),
      ...unprotectedNotes(protection?.unprotected ?? []),
      ...programNotes(protection?.programs ?? []),
      ...tools.notes,
      ...egress.notes,
      ...(worktree !== undefined && 'because' in worktree ? [worktreeNote(worktree)] : []),
    ],
    ...(protection === undefined
      ? {}
      : { unprotected: protection.unprotected, programs: protection.programs }),
    ...(protection === undefined && tools.folders.length === 0
      ? {}
      : { stubs: [...(protection?.stubs ?? []), ...(provided?.stubs ?? []), ...tools.stubs] }),
    ...(tools.folders.length === 0 ? {} : { toolFolders: tools.folders, covered: tools.covered }),
    ...(tools.shared.length === 0 ? {} : { sharedTools: tools.shared }),
    ...(protection !== undefined &&
    provided !== undefined &&
    facts.worktree !== undefined &&
    'gitDir' in facts.worktree
      ? { worktreeDir: facts.worktree.gitDir }
      : {}),
    // The strict profile is a closed table: what it does not name is not inside.
    ...(profileName === 'strict' ? {} : { hostUser: { uid: facts.host.uid, gid: facts.host.gid } }),
    ...(decided.mapping === undefined ? {} : { userMapping: decided.mapping }),
    ...(sharesQuotas(quotas, decided, facts) ? { sharesQuotas: true } : {}),
    ...(lender === undefined ? {} : { lender }),
    ...(spec.runtime === undefined ? {} : { runtime: spec.runtime }),
    ...(spec.egress === undefined ? {} : { egress: true }),
  };
}

/** Where the copies of tools' folders are is known only when the sandbox has an id. */
export function placeShadows(plan: BoxPlan, folderOf: (mountId: string) => string): BoxPlan {
  const mounts = plan.shadows.map(({ mountId, target, writable }) => ({
    source: folderOf(mountId),
    target,
    writable,
  }));
  return { ...plan, mounts: [...plan.mounts, ...mounts] };
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
    ...(plan.sharesQuotas === undefined ? {} : { sharesUid: true }),
    ...(plan.lender === undefined ? {} : { borrows: true }),
    ...(plan.runtime === undefined ? {} : { runtime: plan.runtime }),
    ...(plan.egress === undefined ? {} : { asksGate: true }),
    ...(identity.network === undefined ? {} : { network: identity.network }),
  };
}

/** Something of the host that is wanted inside. */
export interface Source {
  readonly field: string;
  readonly given: string;
  readonly real: string;
  readonly kind: 'file' | 'directory';
  readonly uid: number;
  readonly gid: number;
  readonly how: 'writable' | 'readonly' | 'copy';
  readonly target: Target;
}

const isShared = ({ how }: Source): boolean => how === 'writable';
const owned = ({ field, real, uid, gid }: Source): OwnedPath => ({ field, path: real, uid, gid });

function judgedSources(spec: Spec, facts: PlanFacts): readonly Source[] {
  const sources = [
    ...workspaceSource(spec, facts),
    ...mountSources(spec, facts),
    ...copySources(spec, facts.copies ?? []),
  ];
  for (const source of sources) {
    requireAllowedSource(source.field, { ...source, writable: source.how === 'writable' }, facts.places);
    // What of it a live workspace contains is held; a mount is writable as a whole.
    if (source.how === 'writable' && source.field !== 'workspace.path')
      requireNoProgram(source.field, source.real, facts.places.programs);
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
  requireBranchWithClone(workspace);
  const how = howOf[workspace.mode];
  const target = targetOf('workspace.target', workspace.target);
  return [{ field, given: workspace.path, real, kind: realKind, uid, gid, how, target }];
}

const howOf = { live: 'writable', readonly: 'readonly', copy: 'copy', clone: 'copy' } as const;

function requireBranchWithClone({ mode, branch }: NonNullable<Spec['workspace']>): void {
  if ((mode === 'clone') === (branch !== undefined)) return;
  const field = 'workspace.branch';
  const message =
    branch === undefined
      ? `${field}: \`mode: clone\` needs the branch that is to be cloned`
      : `${field}: a branch is chosen for a clone, and this workspace is \`mode: ${mode}\``;
  throw refuse(field, message, 'Give both `mode: clone` and `branch` (`--branch NAME`), or neither.');
}

function mountSources(spec: Spec, facts: PlanFacts): readonly Source[] {
  return (spec.mounts ?? []).map((mount, index) => ({
    ...realSource(`mounts.${index}.source`, mount.source, facts.mounts[index]),
    how: mount.writable ? 'writable' : 'readonly',
    target: targetOf(`mounts.${index}.target`, mount.target),
  }));
}

/** Undefined: the workspace is not live, so nothing of it can be changed from inside. */
function protectionOf(
  { workspace }: Spec,
  sources: readonly Source[],
  { inWorkspace }: PlanFacts,
): Protection | undefined {
  if (workspace === undefined) return undefined;
  const { protect = [], dangerously_unprotected: unprotected = [], mode } = workspace;
  const live = sources.find(({ field, how }) => field === 'workspace.path' && how === 'writable');
  if (live === undefined) {
    if (protect.length + unprotected.length === 0) return undefined;
    const field = protect.length > 0 ? 'workspace.protect' : 'workspace.dangerously_unprotected';
    const message = `${field}: with \`mode: ${mode}\` nothing of the folder can be changed from inside`;
    throw refuse(field, message, 'Leave it out, or use `mode: live`.');
  }
  if (inWorkspace === undefined) throw new RangeError('nobody looked into the workspace');
  return protectWorkspace(
    { source: live.real, target: live.target.path },
    { protect, unprotected },
    inWorkspace,
  );
}

function worktreeOf(
  { workspace }: Spec,
  sources: readonly Source[],
  home: string,
  { worktree, places }: PlanFacts,
): WorktreeMounts | NoWorktree | undefined {
  if (workspace === undefined || worktree === undefined) return undefined;
  if ('because' in worktree) return worktree;
  try {
    const target = targetOf('workspace.path', worktree.commonDir);
    requireFreeTargets([...sources.map((source) => source.target), target], home);
  } catch (error) {
    if (!isSallyportError(error)) throw error;
    return { because: error.message };
  }
  return worktreeMounts(worktree, workspace.mode === 'live', places);
}

const worktreeNote = ({ because }: NoWorktree): UserNote => ({
  code: 'git_unavailable',
  message: `the workspace's .git is a file, and what it points to is not provided, so git does not work inside: ${because}`,
});

function unprotectedNotes(paths: readonly string[]): readonly UserNote[] {
  if (paths.length === 0) return [];
  const message = `writable inside by request, although the host executes what is there: ${paths.join(', ')}`;
  return [{ code: 'workspace_unprotected', message }];
}

function programNotes(paths: readonly string[]): readonly UserNote[] {
  if (paths.length === 0) return [];
  const shown = paths.slice(0, 5).join(', ');
  const more = paths.length > 5 ? ` and ${paths.length - 5} more` : '';
  const message = `read-only inside, because this machine runs sally from there: ${shown}${more}. An install inside cannot replace them; \`npm install --global sallyport\` and its sally leave the folder writable`;
  return [{ code: 'program_held', message }];
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
  if (spec.copies !== undefined && spec.copies.length > 0) {
    throw refuse(
      'copies',
      "copies: the strict profile's root is read-only, so there is no room for a copy",
      'Mount what is needed read-only (`mounts`), or use the standard profile.',
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
