/** How a command ended, as programs see it. */

import { SallyportError } from '../protocol/errors.ts';
import type { CapturedView, ExecResultView, ExecView } from '../protocol/views.ts';
import { type Camelled, camelled } from './case.ts';
import { errorFromWire } from './wire-error.ts';

export type ExecInfo = Camelled<ExecView>;

export interface ExecOutcome {
  readonly id: string;
  /** Absent when a signal ended it. */
  readonly exitCode?: number;
  /** By name, as SIGKILL. */
  readonly signal?: string;
  /** At most 256 KiB of each: head and tail. `box.logs(id)` has all that is kept. */
  readonly stdout: string;
  readonly stderr: string;
  /** Both, in the order of their arrival. */
  readonly output: string;
  /** The same as bytes. */
  readonly bytes: { readonly stdout: Buffer; readonly stderr: Buffer; readonly output: Buffer };
  /** Something is left out of stdout, stderr or output. */
  readonly truncated: boolean;
  readonly totalBytes: { readonly stdout: number; readonly stderr: number };
  readonly timedOut: boolean;
  readonly oomKilled: boolean;
  readonly killed: boolean;
  readonly durationMs: number;
  /** Everything else that is known of it. */
  readonly info: ExecInfo;
}

export class CommandFailedError extends SallyportError {
  readonly outcome: ExecOutcome;

  constructor(outcome: ExecOutcome) {
    const how = outcome.signal === undefined ? `exit code ${outcome.exitCode}` : `signal ${outcome.signal}`;
    const why = outcome.timedOut ? ', at its time limit' : outcome.oomKilled ? ', out of memory' : '';
    super('command_failed', `${outcome.info.argv[0] ?? 'the command'} ended with ${how}${why}`, {
      details: { exec: outcome.id },
    });
    this.outcome = outcome;
  }
}

/** Rejects where there is no outcome: the command could not be started, or its sandbox ended under it. */
export function outcomeOf(result: ExecResultView): ExecOutcome {
  const { exec } = result;
  if (exec.error !== undefined) throw errorFromWire(exec.error);
  const bytes = {
    stdout: bytesOf(result.stdout),
    stderr: bytesOf(result.stderr),
    output: bytesOf(result.output),
  };
  const { exit_code: exitCode, signal } = exec;
  return {
    id: exec.id,
    ...(exitCode === undefined ? {} : { exitCode }),
    ...(signal === undefined ? {} : { signal }),
    stdout: bytes.stdout.toString('utf8'),
    stderr: bytes.stderr.toString('utf8'),
    output: bytes.output.toString('utf8'),
    bytes,
    truncated: result.stdout.truncated || result.stderr.truncated || result.output.truncated,
    totalBytes: { stdout: result.stdout.total_bytes, stderr: result.stderr.total_bytes },
    timedOut: exec.timed_out,
    oomKilled: exec.oom_killed,
    killed: exec.killed,
    durationMs: exec.duration_ms ?? 0,
    info: camelled(exec),
  };
}

const bytesOf = ({ encoding, data }: CapturedView): Buffer => Buffer.from(data, encoding);
