/** `sally prune`: removes sandboxes whose workspace is gone, and says which. */

import type { CliContext } from '../context.ts';
import { exitCode } from '../exit-codes.ts';
import { note, print, printJson } from '../output.ts';
import { SandboxCalls } from '../sandbox-calls.ts';

interface Pruned {
  readonly sandboxes: readonly {
    readonly id: string;
    readonly name: string;
    readonly why: string;
    readonly removed: boolean;
  }[];
}

export async function pruneCommand(
  options: { readonly dryRun?: true; readonly json?: true },
  { signal }: CliContext,
): Promise<number> {
  const calls = new SandboxCalls();
  try {
    const body = { dry_run: options.dryRun === true };
    const pruned = await calls.client.json<Pruned>('POST', '/v1/prune', { body, signal });
    if (options.json === true) printJson(pruned);
    else {
      for (const { name, why, removed } of pruned.sandboxes) {
        print(
          `${name}  ${removed ? 'removed' : options.dryRun === true ? 'would be removed' : 'kept'}: ${why}`,
        );
      }
      if (pruned.sandboxes.length === 0) note('nothing to remove');
    }
    return exitCode.ok;
  } finally {
    calls.close();
  }
}
