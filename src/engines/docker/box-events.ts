/** What happens to the boxes of one owner, in our words, from the moment of asking. */

import { SallyportError } from '../../protocol/errors.ts';
import { label } from '../../protocol/labels.ts';
import type { BoxEvent } from '../../sandboxes/ports.ts';
import { type EngineEvent, engineEvents } from './system/events.ts';
import { engineTime } from './system/time.ts';
import type { EngineConnection } from './wire/connection.ts';

/** `remove` is Podman's word. It has none for the end of memory; the state of the box tells that. */
const kinds: ReadonlyMap<string, BoxEvent['kind']> = new Map([
  ['start', 'started'],
  ['die', 'ended'],
  ['oom', 'out-of-memory'],
  ['pause', 'paused'],
  ['unpause', 'resumed'],
  ['destroy', 'removed'],
  ['remove', 'removed'],
]);

export function boxEvent(event: EngineEvent): BoxEvent | undefined {
  const kind = event.type === 'container' ? kinds.get(event.action) : undefined;
  if (kind === undefined) return undefined;
  const exitCode = Number.parseInt(event.attributes['exitCode'] ?? '', 10);
  return {
    boxId: event.id,
    kind,
    ...(kind === 'ended' && Number.isInteger(exitCode) ? { exitCode } : {}),
  };
}

/** Boxes and their services alike. */
const eventLabels = (owner: string): readonly [string, string] => [
  `${label.owned}=true`,
  `${label.owner}=${owner}`,
];

/**
 * Asks for the engine's time at once, not when the first event is awaited, and begins with what happened since then:
 * whatever the caller does after this call, it hears of. It may also hear of the few milliseconds before.
 */
export function boxEvents(
  connection: EngineConnection,
  owner: string,
  signal: AbortSignal,
): AsyncIterable<BoxEvent> {
  const begin = engineTime(connection, { signal });
  // Whoever iterates meets the failure; until then it must not end the process.
  begin.catch(() => {});
  return follow(connection, owner, signal, begin);
}

async function* follow(
  connection: EngineConnection,
  owner: string,
  signal: AbortSignal,
  begin: Promise<number>,
): AsyncGenerator<BoxEvent> {
  try {
    const beginMs = await begin;
    const sinceSeconds = Math.floor(beginMs / 1000);
    for await (const event of engineEvents(connection, eventLabels(owner), { signal, sinceSeconds })) {
      // The engine is asked for whole seconds.
      if (event.timeNano / 1e6 < beginMs) continue;
      const translated = boxEvent(event);
      if (translated !== undefined) yield translated;
    }
  } catch (error) {
    if (signal.aborted) return;
    throw error;
  }
  if (signal.aborted) return;
  throw new SallyportError('engine_unreachable', `the engine at ${connection.endpoint} ended its events`, {
    details: { endpoint: connection.endpoint },
  });
}
