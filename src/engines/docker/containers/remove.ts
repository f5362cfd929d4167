import { isSallyportError } from '../../../protocol/errors.ts';
import type { CallOptions, EngineConnection } from '../wire/connection.ts';
import { pathSegment } from '../wire/path-segment.ts';

/** Kills and deletes, with the anonymous volumes. A container that is gone already, or going, is not an error. */
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
      timeoutMs: 60_000,
      ...options,
    });
  } catch (error) {
    if (isSallyportError(error, 'engine_not_found')) return;
    // 409 on a forced removal means that another removal of it is under way.
    if (isSallyportError(error, 'engine_conflict')) {
      await waitUntilRemoved(connection, id, options);
      return;
    }
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
      timeoutMs: 60_000,
      ...options,
    });
  } catch (error) {
    if (!isSallyportError(error, 'engine_not_found')) throw error;
  }
}
