/** What an agent works on, and what is said of it afterwards. The one place that decides between folder, branch and worktree. */

import { realpathSync } from 'node:fs';
import { branchOf, type GitHead, gitHead } from '../../agents/git-head.ts';
import { SallyportError } from '../../protocol/errors.ts';
import type { SpecInput } from '../../protocol/spec.ts';
import { absolutePath } from '../options/spec-from-options.ts';
import type { SandboxCalls } from '../sandbox-calls.ts';
import { sayChanges } from './say-changes.ts';

type Workspace = NonNullable<SpecInput['workspace']>;

export interface WorkspaceWish {
  readonly cwd: string;
  readonly workspace?: string | true;
  readonly workspaceMode?: 'live' | 'readonly' | 'copy';
  readonly branch?: string;
  readonly worktree?: true;
}

export interface ChosenWorkspace {
  /** On the host, links followed. It names the sandbox. */
  readonly folder: string;
  readonly head: GitHead;
  /** For the spec, and to be joined with what flags say. */
  readonly workspace: Workspace;
  /** When the agent is over, whatever became of it. */
  readonly after: (calls: SandboxCalls, box: string, signal: AbortSignal) => Promise<void>;
}

export async function chooseWorkspace(wish: WorkspaceWish, signal: AbortSignal): Promise<ChosenWorkspace> {
  const { cwd, workspace, branch } = wish;
  const folder = realFolder(typeof workspace === 'string' ? absolutePath(workspace, cwd) : cwd);
  if (wish.worktree === true) return await ofWorktree(folder, wish, signal);
  return branch === undefined ? ofFolder(folder, wish.workspaceMode) : ofClone(folder, branch, wish);
}

function ofFolder(folder: string, mode: WorkspaceWish['workspaceMode'] = 'live'): ChosenWorkspace {
  const sinceMs = Date.now();
  return {
    folder,
    head: gitHead(folder),
    workspace: { path: folder, target: targetOf(folder, mode), mode },
    after: async (calls, box, signal) => await sayChanges(calls, { box, folder, mode, sinceMs }, signal),
  };
}

async function ofWorktree(
  repository: string,
  { branch, workspaceMode }: WorkspaceWish,
  signal: AbortSignal,
): Promise<ChosenWorkspace> {
  const head = gitHead(repository);
  const wanted = branch ?? branchOf(head);
  if (wanted === undefined) {
    throw new SallyportError('usage', `--worktree needs a branch, and ${repository} is on none`, {
      advice: 'Add `--branch NAME`.',
    });
  }
  const { chooseWorktree } = await import('../git-workspace.ts');
  return ofFolder(realFolder(await chooseWorktree(repository, wanted, signal)), workspaceMode);
}

function ofClone(folder: string, branch: string, { workspaceMode }: WorkspaceWish): ChosenWorkspace {
  if (workspaceMode !== undefined) {
    throw new SallyportError('usage', '--branch works on a clone, so it takes no --workspace-mode', {
      advice: 'Leave one of them out; `--worktree` works live on a worktree of the branch.',
    });
  }
  return {
    folder,
    head: { kind: 'branch', branch },
    workspace: { path: folder, target: targetOf(folder, 'clone'), mode: 'clone', branch },
    after: async (calls, box) => {
      const { bringClone } = await import('../git-workspace.ts');
      await bringClone(calls, box);
    },
  };
}

/** The same path inside as outside, so that what an agent says and remembers of it is true on both sides. */
function targetOf(folder: string, mode: Workspace['mode']): string {
  const isBelow = (parent: string): boolean => `${folder}/`.startsWith(`${parent}/`);
  // Nobody but root may enter the one in an image, and the other is memory, in which no copy would last.
  return isBelow('/root') || ((mode === 'copy' || mode === 'clone') && isBelow('/tmp'))
    ? '/workspace'
    : folder;
}

function realFolder(path: string): string {
  try {
    return realpathSync(path);
  } catch (cause) {
    throw new SallyportError('usage', `${path} is no folder of this machine`, { cause });
  }
}
