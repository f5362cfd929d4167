/** `sally fetch`: the commits of a private clone, brought into references of their own of the repository. */

import { Sandbox } from '../../sdk/sandbox.ts';
import type { CliContext } from '../context.ts';
import { exitCode } from '../exit-codes.ts';
import { folderSandboxName } from '../folder-sandbox.ts';
import { print, printJson } from '../output.ts';
import { broughtJson, sayBrought } from '../say-brought.ts';

export async function fetchCommand(
  box: string | undefined,
  options: { readonly json?: true },
  { signal }: CliContext,
): Promise<number> {
  const wanted = box === undefined || box === ':' ? folderSandboxName(process.cwd()) : box;
  const sandbox = await Sandbox.connect(wanted, { signal });
  const brought = await sandbox.bringCommits({ signal });
  if (options.json === true) printJson(broughtJson(brought));
  else sayBrought(sandbox.name, brought, print);
  return brought.leftOut.length === 0 ? exitCode.ok : exitCode.failed;
}
