/**
 * Brings the commits of a private clone back: into references of their own of the repository that was cloned. Nothing is checked
 * out and no branch moves. What is in them counts as brought back from then on; what is not committed is told.
 */

import { type ChangedPath, isCommittedIn } from '../agents/git/committed-paths.ts';
import { gitEnvironment } from '../agents/git/config.ts';
import { baseRef } from '../agents/git/private-clone.ts';
import {
  referenceSpace,
  type TakenCommits,
  takeCommits,
  usualBundleLimits,
} from '../agents/git/take-commits.ts';
import { isGitPath } from '../policy/protected-names.ts';
import { SallyportError } from '../protocol/errors.ts';
import { broughtBackPaths } from './apply-changes.ts';
import type { ExecOutcome } from './outcome.ts';
import type { SandboxFiles } from './sandbox-files.ts';
import type { ChangeCalls, WorkspaceChange } from './workspace-changes.ts';

export interface BroughtCommits extends TakenCommits {
  /** The repository of the host. */
  readonly repository: string;
  /** What is in none of the commits: `diff` shows it, and it is still inside. */
  readonly uncommitted: readonly WorkspaceChange[];
}

export interface BringOptions {
  /** Of the bundle; a larger one is refused. */
  readonly maxBytes?: number;
  readonly signal?: AbortSignal;
}

/** What is needed of the sandbox. */
export interface CommitSource {
  readonly id: string;
  readonly name: string;
  readonly workspace?: { readonly path: string; readonly target: string; readonly mode: string } | undefined;
  readonly exec: (argv: readonly string[]) => Promise<ExecOutcome>;
  readonly files: SandboxFiles;
  readonly changes: ChangeCalls;
}

const none: TakenCommits = { references: [], leftOut: [], commits: 0 };

export async function bringCommits(box: CommitSource, options: BringOptions = {}): Promise<BroughtCommits> {
  const { workspace } = box;
  if (workspace?.mode !== 'clone') {
    throw new SallyportError('workspace_not_cloned', `sandbox ${box.name} does not work on a private clone`, {
      details: { sandbox: box.name },
    });
  }
  const cancel = options.signal === undefined ? {} : { signal: options.signal };
  // Before the commits are read: what comes in between is found by the next call.
  const { changes } = await box.changes.list(cancel);
  const taken = (await hasCommits(box, workspace.target)) ? await take(box, workspace, options) : none;
  const git = { folder: workspace.path, environment: gitEnvironment(), ...cancel };
  const outside = changes.filter(({ pathBytes }) => !isGitPath(pathBytes));
  const asked = new Map(outside.map((change) => [changedPath(change), change]));
  const commits = taken.references.map(({ commit }) => commit);
  const committed = await isCommittedIn(git, commits, [...asked.keys()]);
  const uncommitted = [...asked].flatMap(([path, change]) =>
    committed.has(path) || isFolder(change) ? [] : [change],
  );
  const left = new Set(uncommitted);
  const isWhole = taken.leftOut.length === 0;
  const back = changes.filter((change) => !left.has(change) && (isWhole || !isGitPath(change.pathBytes)));
  await box.changes.broughtBack(broughtBackPaths(back));
  return { ...taken, repository: workspace.path, uncommitted };
}

async function hasCommits(box: CommitSource, target: string): Promise<boolean> {
  const counted = await inside(box, target, ['rev-list', '--count', 'HEAD', '--branches', '--not', baseRef]);
  return counted.stdout.trim() !== '0';
}

async function take(
  box: CommitSource,
  { path, target }: { readonly path: string; readonly target: string },
  options: BringOptions,
): Promise<TakenCommits> {
  const file = `${target}/.git/sallyport.bundle`;
  const cancel = options.signal === undefined ? {} : { signal: options.signal };
  const bundleBytes = options.maxBytes ?? usualBundleLimits.bundleBytes;
  try {
    await inside(box, target, ['bundle', 'create', '--quiet', file, 'HEAD', '--branches', '--not', baseRef]);
    return await takeCommits({
      repository: path,
      environment: gitEnvironment(),
      space: referenceSpace(box),
      // One more than is allowed shows that it is too much, and then nothing more is read.
      chunks: box.files.stream(file, { length: bundleBytes + 1, ...cancel }),
      limits: { bundleBytes },
      ...cancel,
    });
  } finally {
    await box.files.remove(file).catch(() => {});
  }
}

/** Whatever it answers is the word of the sandbox. */
async function inside(box: CommitSource, target: string, args: readonly string[]): Promise<ExecOutcome> {
  const ended = await box.exec(['git', '-C', target, ...args]);
  if (ended.exitCode === 0) return ended;
  const said =
    ended.stderr
      .trim()
      .split('\n')
      .at(-1)
      ?.replace(/\p{C}+/gu, ' ') ?? '';
  throw new SallyportError('git_failed', `git ${args[0]} failed inside ${box.name}: ${said.slice(0, 300)}`, {
    details: { sandbox: box.name },
    advice: `Look at it with \`sally exec ${box.name} -- git status\`; \`sally diff ${box.name}\` shows what changed.`,
  });
}

const isFolder = ({ before, after }: WorkspaceChange): boolean => (after ?? before)?.kind === 'directory';

function changedPath({ pathBytes: path, after }: WorkspaceChange): ChangedPath {
  if (after === undefined) return { path };
  if (after.kind === 'symlink')
    return { path, after: { kind: 'link', target: after.linkTarget ?? Buffer.alloc(0) } };
  if (after.kind !== 'file') return { path, after: { kind: 'other' } };
  const { sha256 = '', size: sizeBytes = 0, mode = 0 } = after;
  return { path, after: { kind: 'file', sha256, sizeBytes, isProgram: (mode & 0o100) !== 0 } };
}
