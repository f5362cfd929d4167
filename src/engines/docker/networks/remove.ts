import { isSallyportError } from '../../../protocol/errors.ts';
import type { CallOptions, EngineConnection } from '../wire/connection.ts';
import { pathSegment } from '../wire/path-segment.ts';

/** Absent is not an error; one with running containers on it is. */
export async function removeNetwork(
  connection: EngineConnection,
  id: string,
  options: CallOptions = {},
): Promise<void> {
  try {
    await connection.json<void>({ method: 'DELETE', path: `/networks/${pathSegment(id)}`, ...options });
  } catch (error) {
    if (!isSallyportError(error, 'engine_not_found')) throw error;
  }
}
