/** `sally ls`: the sandboxes of the engine in use as a table, or as the API has them, and how many others hold. */

import type { SandboxView } from '../../protocol/views.ts';
import { readClientEnvironment } from '../../sdk/config.ts';
import { type OtherEngine, otherEngines } from '../../sdk/other-engines.ts';
import type { CliContext } from '../context.ts';
import { exitCode } from '../exit-codes.ts';
import { note, print, printJson } from '../output.ts';
import { SandboxCalls } from '../sandbox-calls.ts';
import { ago, table } from '../table.ts';

const mostNames = 5;

export interface LsOptions {
  readonly label?: readonly string[];
  readonly quiet?: true;
  readonly json?: true;
}

export async function lsCommand(options: LsOptions, { signal }: CliContext): Promise<number> {
  const calls = new SandboxCalls();
  try {
    const sandboxes = await calls.list(options.label, { signal });
    const others = otherEngines(readClientEnvironment().stateDir, calls.client.folder);
    if (options.json === true) printJson({ sandboxes, other_engines: others.map(otherView) });
    else if (options.quiet === true) for (const { name } of sandboxes) print(name);
    else {
      for (const row of table(
        ['NAME', 'STATE', 'IMAGE', 'ISOLATION', 'WORKSPACE', 'CREATED'],
        sandboxes.map(rowOf),
      ))
        print(row);
      for (const other of others) note(otherLine(other));
    }
    return exitCode.ok;
  } finally {
    calls.close();
  }
}

const otherView = ({ names, ...engine }: OtherEngine) => ({ ...engine, sandboxes: names.length });

function otherLine({ engine, endpoint, names }: OtherEngine): string {
  const count = names.length === 1 ? '1 sandbox' : `${names.length} sandboxes`;
  const where = endpoint === undefined ? engine : `${engine} (${endpoint})`;
  return `${count} with another engine, ${where}: ${names.slice(0, mostNames).join(', ')}${names.length > mostNames ? ' …' : ''}`;
}

function rowOf({
  name,
  state,
  running_execs,
  image,
  isolation,
  workspace,
  created_at,
  services,
}: SandboxView): readonly string[] {
  const running = running_execs === 0 ? '' : ` (${running_execs} running)`;
  const where = workspace === undefined ? '-' : `${workspace.path} (${workspace.mode})`;
  const broken = services.filter((service) => service.state === 'FAILED').map((service) => service.name);
  const failed = broken.length === 0 ? '' : ` (failed: ${broken.join(', ')})`;
  return [
    name,
    `${state.toLowerCase()}${running}${failed}`,
    image,
    isolation.level ?? '-',
    where,
    ago(created_at),
  ];
}
