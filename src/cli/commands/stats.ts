/** `sally stats`: what sandboxes use now. */

import { formatDuration } from '../../lib/durations.ts';
import { formatSize } from '../../lib/sizes.ts';
import type { CliContext } from '../context.ts';
import { exitCode } from '../exit-codes.ts';
import { print, printJson } from '../output.ts';
import { SandboxCalls } from '../sandbox-calls.ts';
import { table } from '../table.ts';

export async function statsCommand(
  boxes: readonly string[],
  options: { readonly json?: true },
  { signal }: CliContext,
): Promise<number> {
  const calls = new SandboxCalls();
  try {
    const names = boxes.length > 0 ? boxes : await running(calls, signal);
    const stats = await Promise.all(
      names.map(async (name) => ({ name, ...(await calls.stats(name, { signal })) })),
    );
    if (options.json === true) printJson({ sandboxes: stats });
    else {
      const rows = stats.map(({ name, memory_bytes, memory_limit_bytes, cpu_seconds, pids }) => [
        name,
        `${formatSize(memory_bytes)} of ${formatSize(memory_limit_bytes)}`,
        formatDuration(cpu_seconds * 1000),
        String(pids),
      ]);
      for (const row of table(['NAME', 'MEMORY', 'CPU TIME', 'PIDS'], rows)) print(row);
    }
    return exitCode.ok;
  } finally {
    calls.close();
  }
}

async function running(calls: SandboxCalls, signal: AbortSignal): Promise<readonly string[]> {
  const sandboxes = await calls.list([], { signal });
  return sandboxes.filter(({ state }) => state === 'READY').map(({ name }) => name);
}
