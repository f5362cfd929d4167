/** `sally kill`: ends commands of a sandbox, or sends them a signal. The sandbox goes on. */

import { signalNumber } from '../../lib/signals.ts';
import { SallyportError } from '../../protocol/errors.ts';
import type { CliContext } from '../context.ts';
import { exitCode } from '../exit-codes.ts';
import { print, printJson } from '../output.ts';
import { SandboxCalls } from '../sandbox-calls.ts';

export interface KillOptions {
  readonly signal?: string;
  readonly grace?: number;
  readonly json?: true;
}

export async function killCommand(
  box: string,
  named: string | undefined,
  options: KillOptions,
  { signal: cancel }: CliContext,
): Promise<number> {
  const signal = options.signal === undefined ? undefined : signalName(options.signal);
  const calls = new SandboxCalls();
  try {
    const ids =
      named === undefined
        ? (await calls.execs(box, { signal: cancel }))
            .filter(({ state }) => state === 'running')
            .map(({ id }) => id)
        : [named];
    const grace = options.grace === undefined ? {} : { grace_ms: options.grace };
    const views = await Promise.all(
      ids.map((id) =>
        signal === undefined ? calls.killExec(box, id, grace) : calls.signalExec(box, id, signal),
      ),
    );
    if (options.json === true) printJson({ execs: views });
    else for (const { id } of views) print(id);
    return exitCode.ok;
  } finally {
    calls.close();
  }
}

function signalName(text: string): string {
  const name = text.toUpperCase().replace(/^(?!SIG)/, 'SIG');
  if (signalNumber(name) !== undefined) return name;
  throw new SallyportError('usage', `--signal ${text} is no signal`, {
    advice: 'Write its name, such as INT, TERM, HUP or USR1.',
  });
}
