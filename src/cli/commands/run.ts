/** `sally run`: a command in a new sandbox; its output, input, terminal and exit code are this process's own. */

import { randomBytes } from 'node:crypto';
import { randomName } from '../../policy/names.ts';
import type { ExecInput } from '../../protocol/requests.ts';
import type { SpecInput } from '../../protocol/spec.ts';
import { refuseAgent } from '../agents.ts';
import type { CliContext } from '../context.ts';
import { exitCode } from '../exit-codes.ts';
import { requireTerminal, runForeground, type StreamOptions } from '../foreground.ts';
import { loadSpec } from '../load-spec.ts';
import { makeSandbox } from '../make-sandbox.ts';
import type { BoxOptions } from '../options/box-options.ts';
import { specFlags } from '../options/spec-from-options.ts';
import { timeoutOf } from '../options/timeout.ts';
import { note, print } from '../output.ts';
import { SandboxCalls } from '../sandbox-calls.ts';
import { withWorktree } from '../with-worktree.ts';

export interface RunOptions extends BoxOptions, StreamOptions {
  readonly detach?: true;
  readonly rm?: true;
  readonly timeout?: number;
  readonly timings?: true;
  readonly each?: string;
  readonly jobs?: number;
  readonly json?: true;
}

export async function runCommand(
  command: readonly string[],
  options: RunOptions,
  context: CliContext,
): Promise<number> {
  refuseAgent(command);
  requireTerminal(options);
  const cwd = process.cwd();
  if (options.each !== undefined)
    return await (await import('../run-each.ts')).runEach(command, options, context);
  const { command: _main, ...found } = await loadSpec(
    specFlags(await withWorktree(options, cwd, context), cwd),
    { cwd, approve: options.approve === true },
    context,
  );
  // Not by its workspace: the folder's own sandbox has that name.
  const spec = { ...found, name: found.name ?? randomName(randomBytes(4)) };
  const calls = new SandboxCalls();
  try {
    return options.detach === true
      ? await runDetached(calls, { ...spec, command: [...command] }, options, context)
      : await runAndRemove(calls, spec, execOf(command, options), options, context);
  } finally {
    calls.close();
  }
}

async function runDetached(
  calls: SandboxCalls,
  spec: SpecInput,
  options: RunOptions,
  context: CliContext,
): Promise<number> {
  const made = await makeSandbox(calls, { spec, ephemeral: options.rm === true, detached: true }, context, {
    approve: options.approve === true,
  });
  print(made.name);
  return exitCode.ok;
}

async function runAndRemove(
  calls: SandboxCalls,
  spec: SpecInput,
  exec: ExecInput,
  options: RunOptions,
  context: CliContext,
): Promise<number> {
  const began = process.uptime();
  // A clone has commits that exist nowhere else until they are brought back.
  const isClone = spec.workspace?.mode === 'clone';
  const made = await makeSandbox(calls, { spec, ephemeral: !isClone }, context, {
    approve: options.approve === true,
  });
  const ready = process.uptime();
  try {
    return await runForeground(calls, made.id, exec, { ...options, ephemeral: !isClone }, context);
  } finally {
    const over = process.uptime();
    if (isClone) await (await import('../git-workspace.ts')).endClone(calls, made);
    // Accepted is enough: the daemon removes it whatever becomes of this process.
    else await calls.remove(made.id, { force: true, wait: false });
    if (options.timings === true) {
      const ms = (from: number, to: number): string => `${Math.round((to - from) * 1000)} ms`;
      note(
        `create ${ms(began, ready)}, run ${ms(ready, over)}, remove asked for ${ms(over, process.uptime())}`,
      );
    }
  }
}

function execOf(command: readonly string[], options: RunOptions): ExecInput {
  return { argv: [...command], ...timeoutOf(options) };
}
