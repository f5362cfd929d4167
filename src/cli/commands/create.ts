/** `sally create`: makes a sandbox that stays, and prints its name. */

import { SallyportError } from '../../protocol/errors.ts';
import type { CliContext } from '../context.ts';
import { exitCode } from '../exit-codes.ts';
import { loadSpec } from '../load-spec.ts';
import { makeSandbox } from '../make-sandbox.ts';
import type { BoxOptions } from '../options/box-options.ts';
import { specFlags } from '../options/spec-from-options.ts';
import { print, printJson } from '../output.ts';
import { SandboxCalls } from '../sandbox-calls.ts';
import { withWorktree } from '../with-worktree.ts';

export interface CreateOptions extends BoxOptions {
  readonly reuse?: true;
  readonly json?: true;
}

export async function createCommand(
  { command, isMeant }: { readonly command: readonly string[]; readonly isMeant: boolean },
  options: CreateOptions,
  context: CliContext,
): Promise<number> {
  // Most who write a word here mean the name of the sandbox.
  if (command.length > 0 && !isMeant) {
    throw new SallyportError('usage', `${JSON.stringify(command[0])} is no option`, {
      advice: `Write --name ${command[0]} for the name of the sandbox, or -- before a command that runs in it.`,
    });
  }
  const cwd = process.cwd();
  const placed = await withWorktree(options, cwd, context);
  const flags = { ...specFlags(placed, cwd), ...(command.length === 0 ? {} : { command: [...command] }) };
  const spec = await loadSpec(flags, { cwd, approve: options.approve === true }, context);
  const calls = new SandboxCalls();
  try {
    const made = await makeSandbox(calls, { spec, reuse: options.reuse === true }, context, {
      approve: options.approve === true,
    });
    if (options.json === true) printJson(made);
    else print(made.name);
    return exitCode.ok;
  } finally {
    calls.close();
  }
}
