/** `--worktree`: finds or makes the worktree of the branch, and from then on it is the workspace. */

import { SallyportError } from '../protocol/errors.ts';
import type { CliContext } from './context.ts';
import type { BoxOptions } from './options/box-options.ts';
import { absolutePath } from './options/spec-from-options.ts';

export async function withWorktree<Options extends BoxOptions>(
  options: Options,
  cwd: string,
  { signal }: CliContext,
): Promise<Omit<Options, 'worktree'>> {
  const { worktree, branch, workspace, ...rest } = options;
  if (worktree !== true) return options;
  if (branch === undefined) {
    throw new SallyportError('usage', '--worktree needs the branch that it is of', {
      advice: 'Add `--branch NAME`.',
    });
  }
  const { chooseWorktree } = await import('./git-workspace.ts');
  const repository = typeof workspace === 'string' ? absolutePath(workspace, cwd) : cwd;
  const folder = await chooseWorktree(repository, branch, signal);
  return { ...rest, workspace: folder } as unknown as Omit<Options, 'worktree'>;
}
