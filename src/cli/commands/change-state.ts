/** `sally start`, `stop`, `pause` and `resume`. */

import type { CliContext } from '../context.ts';
import { printPlanted } from '../planted-summary.ts';
import { SandboxCalls } from '../sandbox-calls.ts';
import { onEach } from '../several.ts';

export async function changeCommand(
  verb: 'start' | 'pause' | 'resume',
  boxes: readonly string[],
  { signal }: CliContext,
): Promise<number> {
  const calls = new SandboxCalls();
  return await onEach(boxes, async (box) => void (await calls.change(box, verb, {}, { signal }))).finally(
    () => calls.close(),
  );
}

export async function stopCommand(
  boxes: readonly string[],
  { grace }: { readonly grace?: number },
  { signal }: CliContext,
): Promise<number> {
  const calls = new SandboxCalls();
  const body = grace === undefined ? {} : { grace_ms: grace };
  return await onEach(boxes, async (box) => {
    const { scanned } = await calls.change(box, 'stop', body, { signal });
    if (scanned === true) await printPlanted(calls, box);
  }).finally(() => calls.close());
}
