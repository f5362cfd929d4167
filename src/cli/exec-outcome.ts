/** How a command ended, as an exit code of this process and a line about what is not plain from it (R10). */

import { signalNumber } from '../lib/signals.ts';
import type { ExecView } from '../protocol/views.ts';
import { errorFromWire } from '../sdk/wire-error.ts';
import { exitCode } from './exit-codes.ts';
import { note } from './output.ts';

const ENOENT = 2;

/** Throws where it was not the command that failed: the sandbox ended under it. */
export function exitCodeOf(exec: ExecView): number {
  if (exec.state === 'refused') return notStarted(exec);
  if (exec.error !== undefined) throw errorFromWire(exec.error);
  if (exec.timed_out) {
    note('the command ran out of time and was ended with everything that it had started');
    note('--timeout gives it more, and --timeout never all it wants');
    return exitCode.timeout;
  }
  if (exec.oom_killed)
    note('the kernel killed the command: the memory of the sandbox was used up (--memory)');
  if (exec.memory_limit_exceeded) note('the command used more memory than it was allowed and was ended');
  if (exec.output_incomplete) {
    note('a process that outlived the command kept its output open; it was cut off');
  }
  const { signal } = exec;
  if (signal === undefined) return exec.exit_code ?? exitCode.sallyportFailed;
  return 128 + (signalNumber(signal) ?? Number(signal.replace(/^SIG/, '')));
}

/** As Docker and the shells have it: 127 for a program that is not there, 126 for one that may not be executed. */
function notStarted({ argv, error }: ExecView): number {
  note(error?.message ?? `${argv[0] ?? 'the command'} could not be started`);
  if (error !== undefined) note(error.advice);
  return error?.details['errno'] === ENOENT ? exitCode.notFound : exitCode.notExecutable;
}
