/** `post_start_on_primary`: commands in the sandbox that follow a service's becoming healthy. They are execs like all others. */

import type { Porter } from '../porter/porter.ts';
import { SallyportError } from '../protocol/errors.ts';
import type { SandboxRecord } from './records.ts';
import type { SandboxExecs } from './sandbox-execs.ts';

const timeoutMs = 300_000;
const graceMs = 5000;
const mostShown = 1024;

export interface HookPlace {
  readonly porter: Porter;
  readonly execs: SandboxExecs;
  readonly record: SandboxRecord;
}

export async function runHook(
  { porter, execs, record }: HookPlace,
  service: string,
  argv: readonly string[],
): Promise<void> {
  const exec = execs.start(porter, record, {
    argv: [...argv],
    envs: {},
    stdin: false,
    timeout_ms: timeoutMs,
    grace_ms: graceMs,
    background: true,
    reason: `post_start_on_primary of service ${service}`,
  });
  const { exec: ended, output } = await exec.result();
  if (ended.state === 'exited' && ended.exit_code === 0 && !ended.timed_out) return;
  const how = ended.timed_out
    ? `took longer than ${timeoutMs / 1000} s`
    : ended.state === 'exited'
      ? `ended with ${ended.exit_code ?? ended.signal ?? 'a signal'}`
      : (ended.error?.message ?? ended.state);
  const words = output.encoding === 'utf8' ? output.data.slice(-mostShown).trim() : '';
  throw new SallyportError(
    'service_hook_failed',
    `the hook ${JSON.stringify(argv[0])} of service ${service} ${how}${words === '' ? '' : `: ${words}`}`,
    { details: { service, sandbox: record.name } },
  );
}
