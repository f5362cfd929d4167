/** `sally wait`: until a command is over; prints its exit code, as Docker does. */

import { chosenExec } from '../choose-exec.ts';
import type { CliContext } from '../context.ts';
import { exitCodeOf } from '../exec-outcome.ts';
import { exitCode } from '../exit-codes.ts';
import { print, printJson } from '../output.ts';
import { SandboxCalls } from '../sandbox-calls.ts';

export async function waitCommand(
  box: string,
  named: string | undefined,
  options: { readonly json?: true },
  { signal }: CliContext,
): Promise<number> {
  const calls = new SandboxCalls();
  try {
    const id = await chosenExec(calls, box, named);
    const { exec } = await calls.wait(box, id, { signal });
    if (options.json === true) printJson(exec);
    else print(String(exitCodeOf(exec)));
    return exitCode.ok;
  } finally {
    calls.close();
  }
}
