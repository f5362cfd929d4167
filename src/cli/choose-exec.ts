/** Which command of a sandbox is meant where none is named. */

import { SallyportError } from '../protocol/errors.ts';
import type { ExecView } from '../protocol/views.ts';
import type { SandboxCalls } from './sandbox-calls.ts';

/** The sandbox's own command, else the last one that was started. */
export async function chosenExec(
  calls: SandboxCalls,
  box: string,
  named: string | undefined,
  options: { readonly running?: boolean } = {},
): Promise<string> {
  if (named !== undefined) return named;
  const execs = await calls.execs(box);
  const fitting = options.running === true ? execs.filter(({ state }) => state === 'running') : execs;
  const main = await mainOf(calls, box);
  const found = fitting.find(({ id }) => id === main) ?? fitting.at(-1);
  if (options.running === true && fitting.length > 1 && found?.id !== main) throw several(box, fitting);
  if (found !== undefined) return found.id;
  const what = options.running === true ? 'runs no command' : 'has run no command';
  throw new SallyportError('exec_not_found', `sandbox ${box} ${what}`, {
    details: { sandbox: box },
    advice: `\`sally logs --list ${box}\` lists what was run; \`sally exec ${box} …\` runs something.`,
  });
}

async function mainOf(calls: SandboxCalls, box: string): Promise<string | undefined> {
  const path = `/v1/sandboxes/${encodeURIComponent(box)}/execs/main`;
  return await calls.client.json<ExecView>('GET', path).then(
    ({ id }) => id,
    () => undefined,
  );
}

function several(box: string, execs: readonly ExecView[]): SallyportError {
  return new SallyportError('usage', `${execs.length} commands run in ${box}`, {
    details: { execs: execs.map(({ id }) => id) },
    advice: `Name one of them: ${execs.map(({ id, argv }) => `${id} (${argv[0]})`).join(', ')}.`,
  });
}
