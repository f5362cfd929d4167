/** `sally config`: each value that a sandbox made here would get, and where it comes from (O7). Approves nothing unasked. */

import type { CliContext } from '../context.ts';
import { exitCode } from '../exit-codes.ts';
import { loadFromAll } from '../load-spec.ts';
import type { BoxOptions } from '../options/box-options.ts';
import { specFlags } from '../options/spec-from-options.ts';
import { print, printJson } from '../output.ts';
import { table } from '../table.ts';

export async function configCommand(
  options: BoxOptions & { readonly json?: true },
  context: CliContext,
): Promise<number> {
  const cwd = process.cwd();
  const { values, projectFile, userFile } = await loadFromAll(
    specFlags(options, cwd),
    { cwd, approve: options.approve === true },
    context,
  );
  const shown = values.map((each) => (isSecret(each.field) ? { ...each, value: '(set)' } : each));
  if (options.json === true) {
    printJson({ values: shown, project_file: projectFile ?? null, user_file: userFile ?? null });
    return exitCode.ok;
  }
  const rows = shown.map(({ field, value, source, where }) => [
    field,
    typeof value === 'string' ? value : JSON.stringify(value),
    where === undefined ? source : `${source}: ${where}`,
  ]);
  for (const row of table(['VALUE', 'IS', 'FROM'], rows)) print(row);
  return exitCode.ok;
}

/** A screen is read by more than one person: variables may be secrets. */
const isSecret = (field: string): boolean => field.startsWith('envs.');
