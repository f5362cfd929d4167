#!/usr/bin/env node

/** The entry of `sallyport` and `sally`: parses the verb, loads only that verb's code, maps its outcome to an exit code. */

import { readCliEnvironment } from './config.ts';
import { SignalDesk } from './context.ts';
import { exitCodeFor } from './exit-codes.ts';
import { printError } from './output.ts';
import { program } from './program.ts';

const desk = new SignalDesk((code) => process.exit(code));
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => desk.receive(signal));
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  desk.receive('SIGPIPE');
});

const run = program(desk);
try {
  process.exitCode = await run.main(process.argv.slice(2));
} catch (error) {
  printError(error, { json: run.wantsJson(), debug: readCliEnvironment().debug });
  process.exitCode = desk.signal.reason === 'SIGTERM' ? 143 : exitCodeFor(error, run.verbKind());
}
