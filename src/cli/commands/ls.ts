/** `sally ls`: all sandboxes as a table, or as the API has them. */

import type { SandboxView } from '../../protocol/views.ts';
import type { CliContext } from '../context.ts';
import { exitCode } from '../exit-codes.ts';
import { print, printJson } from '../output.ts';
import { SandboxCalls } from '../sandbox-calls.ts';
import { ago, table } from '../table.ts';

export interface LsOptions {
  readonly label?: readonly string[];
  readonly quiet?: true;
  readonly json?: true;
}

export async function lsCommand(options: LsOptions, { signal }: CliContext): Promise<number> {
  const calls = new SandboxCalls();
  try {
    const sandboxes = await calls.list(options.label, { signal });
    if (options.json === true) printJson({ sandboxes });
    else if (options.quiet === true) for (const { name } of sandboxes) print(name);
    else
      for (const row of table(['NAME', 'STATE', 'IMAGE', 'WORKSPACE', 'CREATED'], sandboxes.map(rowOf)))
        print(row);
    return exitCode.ok;
  } finally {
    calls.close();
  }
}

function rowOf({
  name,
  state,
  running_execs,
  image,
  workspace,
  created_at,
  services,
}: SandboxView): readonly string[] {
  const running = running_execs === 0 ? '' : ` (${running_execs} running)`;
  const where = workspace === undefined ? '-' : `${workspace.path} (${workspace.mode})`;
  const broken = services.filter((service) => service.state === 'FAILED').map((service) => service.name);
  const failed = broken.length === 0 ? '' : ` (failed: ${broken.join(', ')})`;
  return [name, `${state.toLowerCase()}${running}${failed}`, image, where, ago(created_at)];
}
