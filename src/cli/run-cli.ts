/** One call of the command line: its signals, its verb, its exit code. */

import { readCliEnvironment } from './config.ts';
import { SignalDesk } from './context.ts';
import { exitCode, exitCodeFor } from './exit-codes.ts';
import { printError } from './output.ts';
import { program } from './program.ts';
import type { Registry } from './verbs/registry.ts';

export async function runCli(register: (registry: Registry) => void): Promise<void> {
  const desk = new SignalDesk((code) => process.exit(code));
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.on(signal, () => desk.receive(signal));
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
    desk.receive('SIGPIPE');
  });
  const run = program(desk, register);
  const failed = (error: unknown): number => {
    printError(error, { json: run.wantsJson(), debug: readCliEnvironment().debug });
    return exitCodeFor(error, run.verbKind());
  };
  // SECURITY: Node would print such an error as it is, with what others wrote in it. A rejection nobody handles comes here as well.
  process.on('uncaughtException', (error) => process.exit(failed(error)));
  try {
    process.exitCode = desk.exitCode(await run.main(process.argv.slice(2)));
  } catch (error) {
    const code = failed(error);
    process.exitCode = desk.exitCode(desk.interruption === undefined ? code : exitCode.interrupted);
  }
}
