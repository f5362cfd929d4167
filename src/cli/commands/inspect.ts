/** `sally inspect`: sandboxes as the API has them. */

import type { CliContext } from '../context.ts';
import { exitCode } from '../exit-codes.ts';
import { printJson } from '../output.ts';
import { SandboxCalls } from '../sandbox-calls.ts';

export async function inspectCommand(boxes: readonly string[], { signal }: CliContext): Promise<number> {
  const calls = new SandboxCalls();
  try {
    printJson(await Promise.all(boxes.map((box) => calls.get(box, { signal }))));
    return exitCode.ok;
  } finally {
    calls.close();
  }
}
