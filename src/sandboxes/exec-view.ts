/** An exec as the API shows it. */

import { signalName } from '../lib/signals.ts';
import type { ExecView } from '../protocol/views.ts';
import type { ExecRecord } from './records.ts';

export function execView(record: ExecRecord): ExecView {
  return {
    id: record.id,
    sandbox_id: record.sandboxId,
    argv: [...record.argv],
    cwd: record.cwd,
    tty: record.tty,
    state: record.state,
    started_at: record.startedAt,
    timed_out: record.timedOut ?? false,
    oom_killed: record.oomKilled ?? false,
    memory_limit_exceeded: record.memoryLimitExceeded ?? false,
    killed: record.killed ?? false,
    output_incomplete: record.outputIncomplete ?? false,
    left_behind: record.leftBehind ?? 0,
    stdout_bytes: record.stdoutBytes,
    stderr_bytes: record.stderrBytes,
    ...(record.pid === undefined ? {} : { pid: record.pid }),
    ...(record.exitCode === undefined ? {} : { exit_code: record.exitCode }),
    ...(record.signal === undefined ? {} : { signal: signalName(record.signal) }),
    ...(record.userCpuMs === undefined ? {} : { user_cpu_ms: record.userCpuMs }),
    ...(record.systemCpuMs === undefined ? {} : { system_cpu_ms: record.systemCpuMs }),
    ...(record.maxRssBytes === undefined ? {} : { max_rss_bytes: record.maxRssBytes }),
    ...(record.error === undefined ? {} : { error: errorView(record.error) }),
    ...ending(record),
  };
}

/** With its details: whoever shows it tells a program that is missing from one that may not be executed. */
function errorView({ details = {}, ...error }: NonNullable<ExecRecord['error']>): ExecView['error'] {
  return { ...error, details: { ...details } as NonNullable<ExecView['error']>['details'] };
}

function ending({ startedAt, endedAt }: ExecRecord): Pick<ExecView, 'ended_at' | 'duration_ms'> {
  if (endedAt === undefined) return {};
  return { ended_at: endedAt, duration_ms: Math.max(0, Date.parse(endedAt) - Date.parse(startedAt)) };
}
