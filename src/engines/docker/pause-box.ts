/** Freezes a box and lets it go on. Asking for what is so already is no error, on any engine. */

import { isSallyportError, SallyportError } from '../../protocol/errors.ts';
import type { BoxStatus } from '../../sandboxes/ports.ts';
import { pauseContainer } from './containers/pause.ts';
import { unpauseContainer } from './containers/unpause.ts';
import { findBox } from './stop-box.ts';
import type { EngineConnection } from './wire/connection.ts';

export async function pauseBox(connection: EngineConnection, id: string): Promise<void> {
  await reach(connection, id, 'paused', () => pauseContainer(connection, id));
}

export async function unpauseBox(connection: EngineConnection, id: string): Promise<void> {
  await reach(connection, id, 'running', () => unpauseContainer(connection, id));
}

/** Docker and Podman refuse with different statuses, so the state of the box decides what a refusal means. */
async function reach(
  connection: EngineConnection,
  id: string,
  wanted: BoxStatus,
  act: () => Promise<void>,
): Promise<void> {
  try {
    await act();
  } catch (error) {
    if (!isSallyportError(error, 'engine_conflict') && !isSallyportError(error, 'engine_failed')) throw error;
    const state = await findBox(connection, id);
    if (state?.status === wanted) return;
    if (state === undefined || state.running) throw error;
    throw new SallyportError('engine_conflict', `box ${id} does not run`, {
      cause: error,
      details: { box: id, status: state.status },
      advice: 'Start it first.',
    });
  }
}
