/** How a command ended, in the words of its record, its event and its audit line. Pure. */

import { signalName } from '../lib/signals.ts';
import type { ExecResult } from '../porter/exec.ts';
import { SallyportError } from '../protocol/errors.ts';
import type { ExecRecord } from './records.ts';

export function failure(error: SallyportError): Pick<ExecRecord, 'error'> {
  const { code, kind, message, advice, details } = error;
  return { error: { code, kind, message, advice, details } };
}

const waysOut: Readonly<Record<number, (cwd: string) => string>> = {
  2: (cwd) => `Check that the program is in the image, and that the folder ${cwd} exists.`,
  7: () =>
    'Pass less by arguments and variables (one may have 128 KiB), and the rest by a file or standard input.',
  11: () => 'The sandbox has as many processes as it may: end some, or give it more (`limits.pids`).',
  13: (cwd) => `Check that the program may be executed, and that the folder ${cwd} may be entered.`,
};

/** The sandbox tells a number and the kernel's words; what was tried is known here. */
export function notStarted({ argv: [program = ''], cwd }: ExecRecord, error: SallyportError): SallyportError {
  const advice = waysOut[Number(error.details['errno'])]?.(cwd) ?? error.advice;
  return new SallyportError(
    'exec_start_failed',
    `${program} could not be started in ${cwd}: ${error.message}`,
    {
      details: { ...error.details, program, cwd },
      advice,
      cause: error,
    },
  );
}

export function endedEvent(record: ExecRecord) {
  const { state, exitCode, signal } = record;
  return {
    type: 'exec.ended' as const,
    sandbox_id: record.sandboxId,
    exec_id: record.id,
    state: state === 'running' ? ('lost' as const) : state,
    timed_out: record.timedOut ?? false,
    oom_killed: record.oomKilled ?? false,
    ...(exitCode === undefined ? {} : { exit_code: exitCode }),
    ...(signal === undefined ? {} : { signal: signalName(signal) }),
    ...(record.error === undefined ? {} : { error: record.error.code }),
  };
}

export function describeEnd(result: ExecResult, oomKilled: boolean): string {
  if (result.timedOut) return 'timed out';
  if (oomKilled) return 'out of memory';
  if (result.memoryLimitExceeded) return 'memory limit of the command exceeded';
  return result.signal === undefined
    ? `exit ${result.exitCode ?? '?'}`
    : `signal ${signalName(result.signal)}`;
}
