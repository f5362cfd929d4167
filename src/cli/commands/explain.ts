/** `sally explain`: what `sally run` would ask of the engine. Nothing is made, and no engine is needed. */

import { print, printJson } from '../output.ts';
import { type BoxOptions, boxRequest } from '../run-options.ts';

export async function explainCommand(
  command: readonly string[],
  options: BoxOptions & { readonly json?: true },
): Promise<number> {
  const request = boxRequest(command, options);
  const { explainRun } = await import('../../daemon/in-process.ts');
  const { body, line } = await explainRun(request);
  if (options.json === true) printJson({ request: body, docker_run: line, exec: request.exec });
  else {
    print('# what the engine is asked for (POST /containers/create)');
    printJson(body);
    print('\n# the same as a docker run line; porter then waits for its host on stdin');
    print(line);
    print('\n# what porter is asked to start');
    printJson(request.exec);
  }
  return 0;
}
