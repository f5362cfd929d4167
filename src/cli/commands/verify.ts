/** `sally verify`: what is enforced, read back from inside. Ends with 1 if something is not as it was asked for. */

import type { VerifyView } from '../../protocol/views.ts';
import type { CliContext } from '../context.ts';
import { exitCode } from '../exit-codes.ts';
import { colours } from '../harmless.ts';
import { print, printJson } from '../output.ts';
import { SandboxCalls } from '../sandbox-calls.ts';
import { printable } from '../table.ts';

type Check = VerifyView['checks'][number];

const paint: Readonly<Record<Check['status'], (text: string) => string>> = {
  ok: colours.green,
  failed: colours.red,
  unknown: colours.yellow,
};

export async function verifyCommand(
  box: string,
  options: { readonly json?: true },
  { signal }: CliContext,
): Promise<number> {
  const calls = new SandboxCalls();
  try {
    const verified = await calls.verify(box, { signal });
    if (options.json === true) printJson(verified);
    else for (const line of linesOf(verified)) print(line);
    return verified.ok ? exitCode.ok : exitCode.failed;
  } finally {
    calls.close();
  }
}

function linesOf({ checks }: VerifyView): readonly string[] {
  const width = Math.max(0, ...checks.map(({ name }) => name.length));
  const count = (status: Check['status']): number => checks.filter((check) => check.status === status).length;
  return [
    ...checks.flatMap(({ name, expected, found, status, advice }) => {
      const shown = status === 'ok' ? printable(found) : `${printable(found)}, expected ${expected}`;
      const line = `${paint[status](status.padEnd(7))}  ${name.padEnd(width)}  ${shown}`;
      return advice === undefined ? [line] : [line, `         ${printable(advice)}`];
    }),
    '',
    `${count('ok')} ok, ${count('failed')} failed, ${count('unknown')} not shown by this runtime`,
  ];
}
