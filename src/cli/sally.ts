/**
 * The entry of `sallyport` and `sally`.
 *
 * It is built into one file with the verbs that scripts call in loops, because Node takes longer to find and link a few
 * dozen modules than such a call takes. Every other verb is in `main.ts`, which is loaded when it is needed.
 */

import { runCli } from './run-cli.ts';
import { registerExec, registerRun } from './verbs/running.ts';

const atHand: Readonly<Record<string, typeof registerRun>> = { run: registerRun, exec: registerExec };
const verb = process.argv[2] ?? '';
const register = Object.hasOwn(atHand, verb) ? atHand[verb] : undefined;
if (register === undefined) void import('./main.ts');
else void runCli(register);
