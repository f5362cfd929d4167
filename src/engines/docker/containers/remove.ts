import { isSallyportError } from '../../../protocol/errors.ts';
import type { CallOptions, EngineConnection } from '../wire/connection.ts';
import { pathSegment } from '../wire/path-segment.ts';
import { inspectContainer } from './inspect.ts';

/** A box with hundreds of thousands of files takes minutes to be deleted on a busy disk; after this long the engine is asked how it is. */
const removalTimeoutMs = 300_000;

/**
 * Kills and deletes, with the anonymous volumes. A container that is gone already, or going, is not an error. As long as the engine
 * says that it is at it, it is waited for; the timeout is for an engine that says nothing.
 */
export async function removeContainer(
  connection: EngineConnection,
  id: string,
  options: CallOptions = {},
): Promise<void> {
  try {
    await connection.json<void>({
      method: 'DELETE',
      path: `/containers/${pathSegment(id)}`,
      query: { force: true, v: true },
      timeoutMs: removalTimeoutMs,
      ...options,
    });
  } catch (error) {
    if (isSallyportError(error, 'engine_not_found')) return;
    // 409 on a forced removal means that another removal of it is under way.
    const isGoing =
      isSallyportError(error, 'engine_conflict') ||
      (isSallyportError(error, 'engine_timeout') && (await isBeingRemoved(connection, id)));
    if (!isGoing) throw error;
    await waitWhileRemoved(connection, id, options);
  }
}

async function waitWhileRemoved(
  connection: EngineConnection,
  id: string,
  options: CallOptions,
): Promise<void> {
  for (;;) {
    try {
      await waitUntilRemoved(connection, id, options);
      return;
    } catch (error) {
      if (!isSallyportError(error, 'engine_timeout') || !(await isBeingRemoved(connection, id))) throw error;
    }
  }
}

async function isBeingRemoved(connection: EngineConnection, id: string): Promise<boolean> {
  try {
    return (await inspectContainer(connection, id)).status === 'removing';
  } catch (error) {
    if (isSallyportError(error, 'engine_not_found')) return true;
    throw error;
  }
}

/** Gone already is not an error. */
export async function waitUntilRemoved(
  connection: EngineConnection,
  id: string,
  options: CallOptions = {},
): Promise<void> {
  try {
    await connection.json<unknown>({
      method: 'POST',
      path: `/containers/${pathSegment(id)}/wait`,
      query: { condition: 'removed' },
      timeoutMs: removalTimeoutMs,
      ...options,
    });
  } catch (error) {
    if (!isSallyportError(error, 'engine_not_found')) throw error;
  }
}
