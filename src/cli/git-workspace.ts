/** What `--branch` and `--worktree` do around a run: the worktree before it, the commits of a private clone after it. */

import { gitEnvironment } from '../agents/git/config.ts';
import { provideWorktree } from '../agents/git/worktree.ts';
import { isSallyportError } from '../protocol/errors.ts';
import type { SandboxView } from '../protocol/views.ts';
import { Sandbox } from '../sdk/sandbox.ts';
import { note, sayError } from './output.ts';
import type { SandboxCalls } from './sandbox-calls.ts';
import { sayBrought } from './say-brought.ts';

export async function chooseWorktree(
  repository: string,
  branch: string,
  signal: AbortSignal,
): Promise<string> {
  const { folder, isNew } = await provideWorktree({
    repository,
    branch,
    environment: gitEnvironment(),
    signal,
  });
  note(`${isNew ? 'made' : 'works on'} the worktree ${folder}`);
  return folder;
}

/** Its commits come back. What goes wrong is said, and in nobody's way: they are still inside. */
export async function bringClone(calls: SandboxCalls, sandbox: string): Promise<void> {
  try {
    const box = await Sandbox.connect(sandbox, { client: calls.client });
    sayBrought(box.name, await box.bringCommits(), (line) => note(line.replace('\t', ' ')));
  } catch (error) {
    sayError(error);
  }
}

/** Its commits come back, and it goes unless something would go with it. */
export async function endClone(calls: SandboxCalls, { id, name }: SandboxView): Promise<void> {
  await bringClone(calls, id);
  try {
    await calls.remove(id, {});
  } catch (error) {
    if (!isSallyportError(error, 'sandbox_changed')) throw error;
    note(
      `${name} stays, because it has what exists nowhere else → sally diff ${name} · sally rm --force ${name}`,
    );
  }
}
