/** An engine that isolates less than a container engine is used only after its user chose it: by `--engine`, or here. */

import { rememberEngine } from '../lib/engine-choice.ts';
import type { SallyportError } from '../protocol/errors.ts';
import { readClientEnvironment } from '../sdk/config.ts';
import { askYesNo } from './ask.ts';
import type { CliContext } from './context.ts';
import { note } from './output.ts';

/** True: the user chose it now. Without a terminal nobody can. */
export async function chooseWeakerEngine(
  { details }: SallyportError,
  { signal }: CliContext,
): Promise<boolean> {
  const { weaker = [] } = details as { readonly weaker?: readonly string[] };
  if (!(process.stdin.isTTY && process.stderr.isTTY)) return false;
  note('no container engine answers; bubblewrap is here, and isolates less than one:');
  for (const each of weaker) note(`  ${each}`);
  if (!(await askYesNo('use bubblewrap on this machine from now on?', signal))) return false;
  const { stateDir } = readClientEnvironment();
  rememberEngine(stateDir, 'bubblewrap');
  note(`bubblewrap is chosen for this machine; remove ${stateDir}/engine to be asked again`);
  return true;
}
