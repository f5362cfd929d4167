/**
 * A helper container that one process at a time may have, also among processes: the engine gives a container's name to one
 * only. Whoever comes second waits until the first is gone; one that stays longer than the work ever takes was left by a
 * crash and is removed.
 */

import { setTimeout as delay } from 'node:timers/promises';
import { isSallyportError } from '../../protocol/errors.ts';
import { removeContainer, waitUntilRemoved } from './containers/remove.ts';
import type { EngineConnection } from './wire/connection.ts';

const patienceMs = 20_000;
/** Longer than several others take, one after the other. */
const giveUpMs = 120_000;
const pauseMs = 50;

export async function openAlone(
  connection: EngineConnection,
  name: string,
  open: (name: string) => Promise<string>,
): Promise<string> {
  const giveUpAtMs = performance.now() + giveUpMs;
  for (;;) {
    try {
      return await open(name);
    } catch (error) {
      if (!isSallyportError(error, 'engine_conflict') || performance.now() > giveUpAtMs) throw error;
    }
    try {
      await waitUntilRemoved(connection, name, { timeoutMs: patienceMs });
    } catch (error) {
      if (!isSallyportError(error, 'engine_timeout')) throw error;
      await removeContainer(connection, name);
    }
    // Podman has given the name away a moment before there is somebody to wait for.
    await delay(pauseMs);
  }
}
