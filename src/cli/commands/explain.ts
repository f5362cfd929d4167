/** `sally explain`: what `run` or `create` would ask of the engine. Nothing is made; no engine and no daemon is needed. */

import type { CliContext } from '../context.ts';
import { exitCode } from '../exit-codes.ts';
import { loadSpec } from '../load-spec.ts';
import type { BoxOptions } from '../options/box-options.ts';
import { specFlags } from '../options/spec-from-options.ts';
import { note, print, printJson } from '../output.ts';

export async function explainCommand(
  command: readonly string[],
  options: BoxOptions & { readonly json?: true },
  context: CliContext,
): Promise<number> {
  const cwd = process.cwd();
  const flags = { ...specFlags(options, cwd), ...(command.length === 0 ? {} : { command: [...command] }) };
  const spec = await loadSpec(flags, { cwd, approve: options.approve === true }, context);
  const { explainHere } = await import('../../daemon/in-process.ts');
  const { request, dockerRun, commandLine, exec, copies, services, notes } = await explainHere(spec);
  if (options.json === true) {
    const said = {
      request,
      ...(dockerRun === undefined ? {} : { docker_run: dockerRun }),
      ...(commandLine === undefined ? {} : { command_line: commandLine }),
      ...(exec === undefined ? {} : { exec }),
      copies,
      services,
    };
    printJson({ ...said, notes });
    return exitCode.ok;
  }
  for (const remark of notes) note(remark);
  if (commandLine === undefined) {
    print('# what the engine is asked for (POST /containers/create)');
    printJson(request);
    print('\n# the same as a docker run line; porter then waits for its host on stdin');
    print(dockerRun ?? '');
  } else {
    print('# what the keeper prepares, what bubblewrap is given, and what holds the box');
    printJson(request);
    print('\n# the same as a line of shell; docs/bubblewrap.md says what each step is for');
    print(commandLine);
  }
  for (const { name, required, request: asked } of services) {
    print(
      `\n# the ${required ? 'required' : 'optional'} service ${name}; values of its variables are not shown`,
    );
    printJson(asked);
  }
  if (copies.length > 0) {
    print('\n# what is copied in before it is ready');
    printJson(copies);
  }
  if (exec !== undefined) {
    print("\n# what porter is asked to start; the image's own variables come on top");
    printJson(exec);
  }
  return exitCode.ok;
}
