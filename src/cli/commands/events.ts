/** `sally events`: what happened, numbered; with `-f` also what comes. */

import { formatSize } from '../../lib/sizes.ts';
import type { SallyEvent } from '../../protocol/events.ts';
import { followWireEvents } from '../../sdk/events.ts';
import type { CliContext } from '../context.ts';
import { exitCode } from '../exit-codes.ts';
import { print } from '../output.ts';
import { SandboxCalls } from '../sandbox-calls.ts';
import { commandLine, printable } from '../table.ts';

export interface EventsOptions {
  readonly follow?: true;
  readonly since?: number;
  readonly json?: true;
}

export async function eventsCommand(
  box: string | undefined,
  options: EventsOptions,
  { signal }: CliContext,
): Promise<number> {
  const calls = new SandboxCalls();
  const follow = options.follow === true;
  try {
    const sandbox = box === undefined ? undefined : (await calls.get(box, { signal })).id;
    const client = sandbox === undefined ? calls.client : await calls.client.holderOf(sandbox, signal);
    // The last that is there already.
    const { sequence: last } = await client.json<{ sequence: number }>('GET', '/v1/health', { signal });
    const since = options.since ?? 0;
    if (!follow && last <= since) return exitCode.ok;
    const end = new AbortController();
    // All of them, chosen here: who asks the daemon for those of one sandbox counts as its client and keeps it alive.
    const events = followWireEvents(client, { since, signal: AbortSignal.any([signal, end.signal]) });
    for await (const event of events) {
      if (sandbox === undefined || event.sandbox_id === sandbox) {
        print(options.json === true ? JSON.stringify(event) : lineOf(event));
      }
      if (!follow && event.sequence >= last) end.abort();
    }
    return signal.aborted ? exitCode.interrupted : exitCode.ok;
  } finally {
    calls.close();
  }
}

function lineOf(event: SallyEvent): string {
  const head = `${String(event.sequence).padStart(6)}  ${event.at}  ${event.sandbox_id ?? '-'}`;
  return `${head}  ${printable(wordsOf(event))}`;
}

function wordsOf(event: SallyEvent): string {
  switch (event.type) {
    case 'sandbox.state':
      return `${event.name} ${event.to}${event.reason === undefined ? '' : `: ${event.reason}`}`;
    case 'sandbox.progress':
      return `${event.step}: ${event.message}`;
    case 'sandbox.note':
      return `note ${event.code}: ${event.message}`;
    case 'egress.allowed':
      return `reached ${event.host}:${event.port} (${event.rule})`;
    case 'egress.denied':
      return `denied ${event.host}${event.port === 0 ? '' : `:${event.port}`}: ${event.reason}`;
    case 'egress.changed':
      return `egress changed: allow ${event.allow.join(' ') || '-'}, deny ${event.deny.join(' ') || '-'}, ${event.closed} closed`;
    case 'service.ready':
      return `service ${event.service} is ready`;
    case 'service.failed':
      return `service ${event.service} failed: ${event.reason}`;
    case 'service.ended':
      return `service ${event.service} ended: ${event.reason}`;
    case 'port.published':
      return `port ${event.box} is published at ${event.host}`;
    case 'port.unpublished':
      return `port ${event.box} is no longer published at ${event.host}`;
    case 'approval.pending':
      return `${event.approval_id} asks (${event.class}): ${event.command}`;
    case 'approval.decided':
      return `${event.approval_id} is ${event.state}, by ${event.by}`;
    case 'engine.progress':
      return `${event.step}: ${event.message}`;
    case 'engine.reachable':
      return event.reachable ? 'the engine answers again' : 'the engine does not answer any more';
    case 'disk.exceeded':
      return `disk ${event.rule} exceeded: ${diskWords(event)}`;
    case 'exec.started':
      return `${event.exec_id} started: ${commandLine(event.argv)}`;
    case 'exec.ended': {
      const how = event.signal ?? (event.exit_code === undefined ? event.state : `exit ${event.exit_code}`);
      const why = event.error === undefined ? '' : `, ${event.error}`;
      return `${event.exec_id} ended: ${how}${event.timed_out ? ', timed out' : ''}${event.oom_killed ? ', out of memory' : ''}${why}`;
    }
  }
}

function diskWords({
  of,
  used,
  limit,
  free,
  service,
}: Extract<SallyEvent, { type: 'disk.exceeded' }>): string {
  const amount = (value: number): string => (of === 'bytes' ? formatSize(value) : `${value} files`);
  const who = service === undefined ? '' : `service ${service} `;
  const left = free === undefined ? '' : `, ${amount(free)} free on the disk`;
  return `${who}${amount(used)} of ${amount(limit)}${left}`;
}
