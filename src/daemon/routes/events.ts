/** The numbered events as server-sent events: from a number on, then what comes. */

import { SallyportError } from '../../protocol/errors.ts';
import type { SallyEvent } from '../../protocol/events.ts';
import { isSandboxId } from '../../protocol/ids.ts';
import { optionalText, whole } from '../query.ts';
import { type RouteContext, route, type SseMessage } from '../route.ts';
import type { SandboxesSurface } from '../surface.ts';

export const eventRoutes = [
  route({
    method: 'GET',
    path: '/v1/events',
    summary: 'Events as they happen, as server-sent events whose id is the sequence number',
    query: {
      since: whole(
        'Begin after this number, if what comes after it is still kept. Absent: what comes from now on.',
      ),
      sandbox: optionalText('Only events of this sandbox, which has a client for so long.'),
    },
    answers: { 200: { contentType: 'text/event-stream', description: 'Each data line is an Event' } },
    handle: ({ services: { sandboxes }, query, headers, signal, whenOver }) => {
      const id = query.sandbox === undefined ? undefined : chosen(sandboxes, query.sandbox, whenOver);
      // A browser that comes back asks with the old URL: its header knows better.
      const since = lastEventId(headers['last-event-id']) ?? query.since ?? sandboxes.events.sequence;
      return { type: 'events', messages: messages(sandboxes.events.follow(since, signal), id) };
    },
  }),
];

function chosen(
  sandboxes: SandboxesSurface,
  reference: string,
  whenOver: RouteContext<string, unknown, unknown>['whenOver'],
): string {
  try {
    const sandbox = sandboxes.get(reference);
    whenOver(sandbox.hold());
    return sandbox.id;
  } catch (error) {
    // One that is gone still has events.
    if (isSandboxId(reference)) return reference;
    throw error;
  }
}

function lastEventId(value: string | string[] | undefined): number | undefined {
  if (value === undefined || value === '') return undefined;
  if (typeof value === 'string' && /^\d{1,15}$/.test(value)) return Number(value);
  throw new SallyportError('request_invalid', 'header.last-event-id is no sequence number', {
    details: { field: 'header.last-event-id' },
  });
}

async function* messages(
  events: AsyncIterable<SallyEvent>,
  sandbox: string | undefined,
): AsyncGenerator<SseMessage> {
  for await (const event of events) {
    if (sandbox === undefined || event.sandbox_id === sandbox) yield { id: event.sequence, data: event };
  }
}
