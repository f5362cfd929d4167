/** `sally rm`: removes sandboxes. Changes of a copied workspace that were never taken out need `--force`. */

import { isSallyportError } from '../../protocol/errors.ts';
import type { CliContext } from '../context.ts';
import { notePlanted } from '../planted-summary.ts';
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
        const scan = await calls.remove(box, { force, scan: true }, { signal });
        if (scan !== undefined) notePlanted(scan);
      } catch (error) {
        if (!force || !isSallyportError(error, 'sandbox_not_found')) throw error;
      }
    });
  } finally {
    calls.close();
  }
}
