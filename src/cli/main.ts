#!/usr/bin/env node

/** The entry of `sallyport` and `sally`: parses the verb, loads only that verb's code, maps its outcome to an exit code. */

import { readCliEnvironment } from './config.ts';
import { exitCodeFor } from './exit-codes.ts';
import { printError } from './output.ts';
import { program } from './program.ts';

const interrupted = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    // The second one means it: whoever waits for a clean end has had the chance.
    if (interrupted.signal.aborted) process.exit(signal === 'SIGTERM' ? 143 : 130);
    interrupted.abort(signal);
  });
}

// `sally doctor | head`: a reader that has seen enough is not an error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  process.exit();
});

const run = program({ signal: interrupted.signal });
try {
  process.exitCode = await run.main(process.argv.slice(2));
} catch (error) {
  printError(error, { json: run.wantsJson(), debug: readCliEnvironment().debug });
  process.exitCode = interrupted.signal.reason === 'SIGTERM' ? 143 : exitCodeFor(error, run.verbKind());
}
