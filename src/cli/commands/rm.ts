/** `sally rm`: removes sandboxes. Changes of a copied workspace that were never taken out need `--force`. */

import { isSallyportError } from '../../protocol/errors.ts';
import type { CliContext } from '../context.ts';
import { printPlanted } from '../planted-summary.ts';
import { SandboxCalls } from '../sandbox-calls.ts';
import { onEach } from '../several.ts';

export async function rmCommand(
  boxes: readonly string[],
  options: { readonly force?: true },
  { signal }: CliContext,
): Promise<number> {
  const calls = new SandboxCalls();
  const force = options.force === true;
  try {
    return await onEach(boxes, async (box) => {
      try {
        await stopToScan(calls, box, signal);
        await calls.remove(box, { force }, { signal });
      } catch (error) {
        if (!force || !isSallyportError(error, 'sandbox_not_found')) throw error;
      }
    });
  } finally {
    calls.close();
  }
}

/** What runs could plant something until it ends, and a sandbox that was removed cannot be asked. */
async function stopToScan(calls: SandboxCalls, box: string, signal: AbortSignal): Promise<void> {
  const { scanned, state } = await calls.get(box, { signal });
  if (scanned !== true || state !== 'READY') return;
  await calls.change(box, 'stop', { grace_ms: 0 }, { signal });
  await printPlanted(calls, box);
}
