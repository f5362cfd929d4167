/** The whole command line, for every verb that `sally.ts` does not have at hand. */

import { runCli } from './run-cli.ts';
import { registerAll } from './verbs/all.ts';

await runCli(registerAll);
