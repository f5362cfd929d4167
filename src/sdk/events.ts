/** The numbered events as they happen, over as many connections as it takes: nothing twice, nothing missed. */

import { setTimeout as sleep } from 'node:timers/promises';
import { isSallyportError } from '../protocol/errors.ts';
import type { SallyEvent } from '../protocol/events.ts';
import { type Camelled, camelled } from './case.ts';
import type { DaemonClient } from './client.ts';
import { readSse } from './sse.ts';

export type SandboxEvent = Camelled<SallyEvent>;

export interface EventOptions {
  /** Begin after this number, if what comes after it is still kept. Absent: what comes from now on. */
  readonly since?: number;
  readonly signal?: AbortSignal;
}

const pauseMs = 100;

export async function* followEvents(
  client: DaemonClient,
  options: EventOptions & { readonly sandbox?: string } = {},
): AsyncGenerator<SandboxEvent> {
  for await (const event of followWireEvents(client, options)) yield camelled(event);
}

/** Of the daemon that has the sandbox: each one has its own numbers. */
async function lastSequence(client: DaemonClient, sandbox: string | undefined): Promise<number> {
  const holder = sandbox === undefined ? client : await client.holderOf(sandbox);
  return (await holder.json<{ sequence: number }>('GET', '/v1/health')).sequence;
}

/** The same as the daemon writes them. */
export async function* followWireEvents(
  client: DaemonClient,
  options: EventOptions & { readonly sandbox?: string } = {},
): AsyncGenerator<SallyEvent> {
  const { sandbox, signal } = options;
  let since = options.since ?? (await lastSequence(client, sandbox));
  while (signal?.aborted !== true) {
    try {
      const answer = await client.open('GET', '/v1/events', {
        query: { since, sandbox },
        ...(signal === undefined ? {} : { signal }),
      });
      const stop = (): void => void answer.destroy();
      signal?.addEventListener('abort', stop, { once: true });
      try {
        for await (const { data } of readSse(answer)) {
          const event = JSON.parse(data) as SallyEvent;
          since = event.sequence;
          yield event;
        }
      } finally {
        signal?.removeEventListener('abort', stop);
        answer.destroy();
      }
    } catch (error) {
      if (signal?.aborted) return;
      if (isSallyportError(error) && error.code !== 'daemon_gone') throw error;
    }
    // The daemon ended this stream: the next one goes on with it.
    await sleep(pauseMs);
  }
}
