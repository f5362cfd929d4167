/** `sally inject`: files of this machine to where a sandbox expects them. Prints how many went in. */

import { mostHoleBytes } from '../../lib/hole-bound.ts';
import { formatSize } from '../../lib/sizes.ts';
import { injectFiles } from '../../sdk/inject-files.ts';
import { SandboxFiles } from '../../sdk/sandbox-files.ts';
import type { CliContext } from '../context.ts';
import { exitCode } from '../exit-codes.ts';
import { note, print, printJson } from '../output.ts';
import { progressLine } from '../progress-line.ts';
import { SandboxCalls } from '../sandbox-calls.ts';
import { printable } from '../table.ts';

export async function injectCommand(
  box: string,
  names: readonly string[],
  options: { readonly json?: true },
  { signal }: CliContext,
): Promise<number> {
  const calls = new SandboxCalls();
  const line = progressLine();
  try {
    const view = await calls.get(box, { signal });
    let current = 0;
    const { count, files, missing, tooLarge } = await injectFiles(
      new SandboxFiles(calls.client, view.id),
      view,
      names,
      {
        signal,
        onFile: ({ to }) =>
          line.report({ step: 'inject', message: to, current: ++current, total: names.length }),
      },
    ).finally(line.done);
    for (const name of missing) note(`warning: ${printable(name)} is not there and was left out`);
    for (const path of tooLarge) {
      const most = formatSize(mostHoleBytes);
      note(`warning: ${printable(path)} was left out: more than ${most} of holes are not read`);
    }
    if (options.json === true) printJson({ injected: count, files, missing, too_large: tooLarge });
    else print(String(count));
    return exitCode.ok;
  } finally {
    calls.close();
  }
}
