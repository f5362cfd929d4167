/** `sally reset`: removes every sandbox of this user and state folder, after a question. */

import { SallyportError } from '../../protocol/errors.ts';
import { askYesNo } from '../ask.ts';
import type { CliContext } from '../context.ts';
import { exitCode } from '../exit-codes.ts';
import { note } from '../output.ts';
import { SandboxCalls } from '../sandbox-calls.ts';
import { onEach } from '../several.ts';

export async function resetCommand(
  options: { readonly yes?: true },
  { signal }: CliContext,
): Promise<number> {
  const calls = new SandboxCalls();
  try {
    const names = (await calls.list([], { signal })).map(({ name }) => name);
    if (names.length === 0) {
      note('there is no sandbox');
      return exitCode.ok;
    }
    if (options.yes !== true && !(await agreed(names, signal))) {
      note('nothing was removed');
      return exitCode.failed;
    }
    return await onEach(names, async (name) => void (await calls.remove(name, { force: true })));
  } finally {
    calls.close();
  }
}

async function agreed(names: readonly string[], signal: AbortSignal): Promise<boolean> {
  if (process.stdin.isTTY && process.stderr.isTTY) {
    note(`these are removed with everything in them: ${names.join(', ')}`);
    return await askYesNo(`Remove ${names.length === 1 ? 'it' : `all ${names.length}`}?`, signal);
  }
  throw new SallyportError('usage', `${names.length} sandboxes would be removed, and nobody can be asked`, {
    advice: 'Add --yes if that is what you want.',
  });
}
