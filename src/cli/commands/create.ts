/** `sally create`: makes a sandbox that stays, and prints its name. */

import type { CliContext } from '../context.ts';
import { exitCode } from '../exit-codes.ts';
import { loadSpec } from '../load-spec.ts';
import { makeSandbox } from '../make-sandbox.ts';
import type { BoxOptions } from '../options/box-options.ts';
import { specFlags } from '../options/spec-from-options.ts';
import { print, printJson } from '../output.ts';
import { SandboxCalls } from '../sandbox-calls.ts';

export interface CreateOptions extends BoxOptions {
  readonly reuse?: true;
  readonly json?: true;
}

export async function createCommand(
  command: readonly string[],
  options: CreateOptions,
  context: CliContext,
): Promise<number> {
  const cwd = process.cwd();
  const flags = { ...specFlags(options, cwd), ...(command.length === 0 ? {} : { command: [...command] }) };
  const spec = await loadSpec(flags, { cwd, approve: options.approve === true }, context);
  const calls = new SandboxCalls();
  try {
    const made = await makeSandbox(calls, { spec, reuse: options.reuse === true }, context);
    if (options.json === true) printJson(made);
    else print(made.name);
    return exitCode.ok;
  } finally {
    calls.close();
  }
}
