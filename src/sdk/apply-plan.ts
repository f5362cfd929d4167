/**
 * What to do with each change when it is brought back: three states decide, as it was copied in, as it is inside, and as it
 * is on the host now. Pure but for looking. Whatever is not plainly the sandbox's change to an untouched path is a conflict.
 */

import { Turns } from '../lib/turns.ts';
import { isProtectedPath } from '../policy/protected-names.ts';
import { gitDirectoryParts } from './git-directories.ts';
import { type ComparedFiles, type HostFolder, type HostState, mostHoleBytes } from './host-folder.ts';
import { stagingPrefix } from './staging-folder.ts';
import type { ChangeSide, WorkspaceChange } from './workspace-changes.ts';
import { leavesTree } from './write-tree.ts';

export interface ApplyRules {
  /** Conflicts are overwritten, but never a folder with other things in it, and never through a link. */
  readonly force?: boolean;
  /** What is in conflict is left as it is, and the rest is written. */
  readonly skipConflicts?: boolean;
  /** Paths that the host executes unasked and that shall be written all the same, with what is below them. */
  readonly includeProtected?: readonly string[];
  /** Also links that lead out of the folder. */
  readonly keepLinks?: boolean;
}

export interface Step {
  readonly change: WorkspaceChange;
  /** As it was when it was decided. */
  readonly host: HostState;
}

export interface LeftOut {
  readonly path: string;
  readonly why: string;
  /** It is one that the host executes unasked. */
  readonly isProtected: boolean;
}

export interface Conflict {
  readonly path: string;
  /** What was done on the host, and inside. */
  readonly host: string;
  readonly inside: string;
  /** Not even `force` writes it. */
  readonly isHard: boolean;
}

export interface ApplyPlan {
  readonly steps: readonly Step[];
  /** On the host as it is inside already. */
  readonly same: readonly WorkspaceChange[];
  readonly leftOut: readonly LeftOut[];
  readonly conflicts: readonly Conflict[];
}

export async function planApply(
  folder: HostFolder,
  changes: readonly WorkspaceChange[],
  rules: ApplyRules,
): Promise<ApplyPlan> {
  const steps: Step[] = [];
  const same: WorkspaceChange[] = [];
  const leftOut: LeftOut[] = [];
  const conflicts: Conflict[] = [];
  const folders = new Set<string>();
  const turns = new Turns();
  const isOfGit = await gitDirectoryParts(folder, changes);
  for (const change of changes) {
    await turns.take();
    const left = whyLeftOut(change, rules, isOfGit);
    if (left !== undefined) {
      leftOut.push({ path: change.path, ...left });
      continue;
    }
    const found = await folder.look(change.pathBytes, filesOf(change));
    // What is in its way becomes a folder before.
    const isCleared = found.kind === 'blocked' && folders.has(found.at.toString('latin1'));
    const host: HostState = isCleared ? { kind: 'absent' } : found;
    if (isAs(change.after, host)) same.push(change);
    else if (isAs(change.before, host) || (rules.force === true && canForce(change, host))) {
      steps.push({ change, host });
      if (change.after?.kind === 'directory') folders.add(change.pathBytes.toString('latin1'));
    } else conflicts.push(conflictOf(change, host));
  }
  return withoutFullFolders(folder, { steps, same, leftOut, conflicts });
}

function filesOf({ before, after }: WorkspaceChange): ComparedFiles {
  const files = [before, after].filter((side) => side?.kind === 'file');
  return { sizes: files.map((side) => side?.size ?? 0), sha256: before?.sha256 };
}

function whyLeftOut(
  { pathBytes, after }: WorkspaceChange,
  { includeProtected = [], keepLinks }: ApplyRules,
  isOfGit: (path: Buffer) => boolean,
): Omit<LeftOut, 'path'> | undefined {
  const path = pathBytes.toString('latin1');
  const isNamed = includeProtected.some((one) => isAtOrBelow(path, Buffer.from(one).toString('latin1')));
  if (!isNamed && isProtectedPath(pathBytes))
    return { why: 'this machine may execute it unasked', isProtected: true };
  if (!isNamed && isOfGit(pathBytes))
    return { why: 'git would take its folder for a git directory and obey it', isProtected: true };
  if (path.startsWith(stagingPrefix)) return { why: 'its name is taken for what waits', isProtected: false };
  if (after?.kind === 'unknown')
    return { why: 'it is neither file, folder nor link, or may not be read', isProtected: false };
  if (after?.compared === false)
    return { why: 'it is too large to compare; `sally cp` copies it out', isProtected: false };
  const target = after?.linkTarget;
  if (target !== undefined && keepLinks !== true && leavesTree(path, target.toString('latin1')))
    return { why: `it is a link out of the folder, to ${target.toString('utf8')}`, isProtected: false };
  return undefined;
}

const isAtOrBelow = (path: string, above: string): boolean => {
  const plain = above.replace(/\/+$/, '');
  return path === plain || path.startsWith(`${plain}/`);
};

const ownerMayRun = 0o100;

export function isAs(side: ChangeSide | undefined, host: HostState): boolean {
  if (side === undefined) return host.kind === 'absent';
  if (side.kind === 'file' && host.kind === 'file')
    return (
      side.sha256 !== undefined &&
      (side.sha256 === host.sha256 || side.sha256 === host.plainSha256) &&
      ((side.mode ?? 0) & ownerMayRun) === (host.mode & ownerMayRun)
    );
  if (side.kind === 'symlink' && host.kind === 'symlink')
    return side.linkTarget?.equals(host.linkTarget) ?? false;
  return side.kind === 'directory' && host.kind === 'directory';
}

const canForce = ({ after }: WorkspaceChange, { kind }: HostState): boolean =>
  kind !== 'blocked' && kind !== 'other' && !(kind === 'directory' && after?.kind !== 'directory');

/** A folder that makes room for something else must have nothing in it but what goes. */
function withoutFullFolders(folder: HostFolder, plan: ApplyPlan): ApplyPlan {
  const going = new Set(
    plan.steps
      .filter(({ change }) => change.after === undefined)
      .map(({ change }) => change.pathBytes.toString('latin1')),
  );
  const conflicts = [...plan.conflicts];
  const steps: Step[] = [];
  for (const step of plan.steps) {
    const { pathBytes, after, path } = step.change;
    const makesRoom = step.host.kind === 'directory' && after !== undefined;
    const stays = makesRoom ? firstStaying(folder, pathBytes, going) : undefined;
    if (stays === undefined) steps.push(step);
    else {
      const host = `has ${JSON.stringify(stays)} in it`;
      conflicts.push({ path, host, inside: `became ${nouns[after?.kind ?? 'unknown']}`, isHard: true });
    }
  }
  return { ...plan, steps, conflicts };
}

function firstStaying(folder: HostFolder, path: Buffer, going: ReadonlySet<string>): string | undefined {
  for (const below of folder.below(path)) {
    if (!going.has(below.toString('latin1'))) return below.toString('utf8');
  }
  return undefined;
}

const nouns = {
  file: 'a file',
  directory: 'a folder',
  symlink: 'a link',
  unknown: 'something else',
  other: 'something else',
} as const;

function conflictOf(change: WorkspaceChange, host: HostState): Conflict {
  const { path, before, after } = change;
  const inside =
    after === undefined
      ? 'removed'
      : before === undefined
        ? `added ${nouns[after.kind]}`
        : becameOrChanged(before, after.kind);
  return { path, host: whatHostDid(before, host), inside, isHard: !canForce(change, host) };
}

const becameOrChanged = (before: ChangeSide, kind: keyof typeof nouns): string =>
  before.kind === kind ? 'changed' : `became ${nouns[kind]}`;

function whatHostDid(before: ChangeSide | undefined, host: HostState): string {
  switch (host.kind) {
    case 'absent':
      return 'removed';
    case 'blocked':
      return `${JSON.stringify(host.at.toString('utf8'))} is a link, or no folder`;
    default:
      if (host.kind === 'file' && host.hasManyHoles === true)
        return `has more than ${mostHoleBytes / 2 ** 30} GiB of holes and was not compared`;
      return before === undefined ? `added ${nouns[host.kind]}` : becameOrChanged(before, host.kind);
  }
}
