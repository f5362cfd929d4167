/** `sally start`, `stop`, `pause` and `resume`. */

import type { CliContext } from '../context.ts';
import { note } from '../output.ts';
import { notePlanted } from '../planted-summary.ts';
import { SandboxCalls } from '../sandbox-calls.ts';
import { onEach } from '../several.ts';

export async function changeCommand(
  verb: 'pause' | 'resume',
  boxes: readonly string[],
  { signal }: CliContext,
): Promise<number> {
  const calls = new SandboxCalls();
  return await onEach(boxes, async (box) => void (await calls.change(box, verb, {}, { signal }))).finally(
    () => calls.close(),
  );
}

export async function startCommand(
  boxes: readonly string[],
  { cleanUp, disk }: { readonly cleanUp?: true; readonly disk?: number },
  { signal }: CliContext,
): Promise<number> {
  const calls = new SandboxCalls();
  const body = { clean_up: cleanUp, disk };
  return await onEach(boxes, async (box) => {
    const { name } = await calls.change(box, 'start', body, { signal });
    if (cleanUp === true)
      note(
        `${name} runs for clean-up; free space with \`sally shell ${name}\`, then run \`sally start ${name}\``,
      );
  }).finally(() => calls.close());
}

export async function stopCommand(
  boxes: readonly string[],
  { grace }: { readonly grace?: number },
  { signal }: CliContext,
): Promise<number> {
  const calls = new SandboxCalls();
  const body = grace === undefined ? {} : { grace_ms: grace };
  return await onEach(boxes, async (box) => {
    const { scan } = await calls.stop(box, body, { signal });
    if (scan !== undefined) notePlanted(scan);
  }).finally(() => calls.close());
}
