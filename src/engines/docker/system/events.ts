import type { CallOptions, EngineConnection } from '../wire/connection.ts';
import { carriesLabel, labelFilter } from '../wire/filters.ts';
import { jsonLines } from '../wire/json-lines.ts';

export interface EngineEvent {
  readonly type: string;
  readonly action: string;
  readonly id: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly timeNano: number;
}

interface EventBody {
  readonly Type: string;
  readonly Action: string;
  readonly Actor: { readonly ID: string; readonly Attributes: Record<string, string> | null };
  readonly timeNano: number;
}

/** What happens to objects with all of these labels, from `sinceSeconds` (Unix time) on, until aborted or left. */
export async function* engineEvents(
  connection: EngineConnection,
  labels: readonly [string, ...string[]],
  options: CallOptions & { readonly sinceSeconds?: number; readonly untilSeconds?: number } = {},
): AsyncGenerator<EngineEvent> {
  const { sinceSeconds, untilSeconds, ...call } = options;
  const stream = await connection.stream({
    method: 'GET',
    path: '/events',
    query: { filters: labelFilter(labels), since: sinceSeconds, until: untilSeconds },
    ...call,
  });
  try {
    for await (const body of jsonLines<EventBody>(stream)) {
      const attributes = body.Actor.Attributes ?? {};
      // Podman is content with any one of the labels.
      if (!labels.every((wanted) => carriesLabel(attributes, wanted))) continue;
      yield {
        type: body.Type,
        action: body.Action,
        id: body.Actor.ID,
        attributes,
        timeNano: body.timeNano,
      };
    }
  } finally {
    stream.destroy();
  }
}
