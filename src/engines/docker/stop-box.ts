/** Ends what runs in a box and keeps the box: politely, and then in every case. */

import { isSallyportError } from '../../protocol/errors.ts';
import type { BoxState } from '../../sandboxes/ports.ts';
import { boxState } from './box-state.ts';
import { inspectContainer } from './containers/inspect.ts';
import { killContainer } from './containers/kill.ts';
import { stopContainer } from './containers/stop.ts';
import { unpauseContainer } from './containers/unpause.ts';
import type { EngineConnection } from './wire/connection.ts';

/** On top of the grace. An engine that takes longer is stuck, for instance on output that nobody reads. */
const patienceMs = 10_000;

export async function stopBox(
  connection: EngineConnection,
  id: string,
  graceMs: number,
  engineMs = patienceMs,
): Promise<void> {
  const state = await findBox(connection, id);
  if (state === undefined || !state.running) return;
  // Podman does not stop what is paused, and leaves it with a signal that ends it at once when it goes on.
  if (state.status === 'paused') await unlessGone(connection, id, unpauseContainer(connection, id));
  const graceSeconds = Math.ceil(Math.max(graceMs, 0) / 1000);
  const timeoutMs = graceSeconds * 1000 + engineMs;
  try {
    await unlessGone(connection, id, stopContainer(connection, id, graceSeconds, { timeoutMs }));
  } catch (error) {
    if (!isSallyportError(error, 'engine_timeout')) throw error;
    await unlessGone(connection, id, killContainer(connection, id, 'KILL'));
  }
}

/** Undefined when there is no such box. */
export async function findBox(connection: EngineConnection, id: string): Promise<BoxState | undefined> {
  try {
    return boxState(await inspectContainer(connection, id));
  } catch (error) {
    if (isSallyportError(error, 'engine_not_found')) return undefined;
    throw error;
  }
}

/** A box may end, or be let go on, by itself at any moment; then the engine refuses what is done already. */
async function unlessGone(connection: EngineConnection, id: string, call: Promise<void>): Promise<void> {
  try {
    await call;
  } catch (error) {
    if (isSallyportError(error, 'engine_not_found')) return;
    if (!isSallyportError(error, 'engine_conflict') && !isSallyportError(error, 'engine_failed')) throw error;
    const state = await findBox(connection, id);
    if (state?.running === true) throw error;
  }
}
