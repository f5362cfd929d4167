/** `sally prune`: removes what is no longer needed, and says what and why. */

import { formatSize } from '../../lib/sizes.ts';
import type { PruneInput } from '../../protocol/requests.ts';
import type { PruneView } from '../../protocol/views.ts';
import type { CliContext } from '../context.ts';
import { exitCode } from '../exit-codes.ts';
import { note, print, printJson } from '../output.ts';
import { SandboxCalls } from '../sandbox-calls.ts';
import { table } from '../table.ts';

export interface PruneCommandOptions {
  readonly dryRun?: true;
  readonly olderThan?: number;
  readonly agent?: string;
  readonly json?: true;
}

const outcomes: Readonly<Record<PruneView['things'][number]['outcome'], string>> = {
  removed: 'removed',
  would_be_removed: 'would be removed',
  kept: 'kept',
};

export async function pruneCommand(
  { dryRun: isDry, olderThan, agent, json }: PruneCommandOptions,
  { signal }: CliContext,
): Promise<number> {
  const dryRun = isDry === true;
  const calls = new SandboxCalls();
  try {
    const body: PruneInput = {
      dry_run: dryRun,
      ...(olderThan === undefined ? {} : { older_than_ms: olderThan }),
      ...(agent === undefined ? {} : { agent }),
    };
    const view = await calls.client.json<PruneView>('POST', '/v1/prune', { body, signal });
    if (json === true) printJson(view);
    else show(view, dryRun);
    return exitCode.ok;
  } finally {
    calls.close();
  }
}

function show({ things, freed_bytes: freed }: PruneView, dryRun: boolean): void {
  if (things.length === 0) {
    note('nothing to remove');
    return;
  }
  const rows = things.map(({ name, kind, size_bytes, outcome, why, note: kept }) => [
    name,
    kind,
    formatSize(size_bytes),
    outcomes[outcome],
    kept === undefined ? why : `${why}; ${kept}`,
  ]);
  for (const line of table(['NAME', 'KIND', 'SIZE', 'OUTCOME', 'WHY'], rows)) print(line);
  note(`${formatSize(freed)} ${dryRun ? 'would be freed' : 'freed'}`);
}
