import { isSallyportError } from '../../../protocol/errors.ts';
import type { CallOptions, EngineConnection } from '../wire/connection.ts';
import { pathSegment } from '../wire/path-segment.ts';

/** Absent is not an error; in use is (`engine_conflict`). */
export async function removeVolume(
  connection: EngineConnection,
  name: string,
  options: CallOptions = {},
): Promise<void> {
  try {
    await connection.json<void>({ method: 'DELETE', path: `/volumes/${pathSegment(name)}`, ...options });
  } catch (error) {
    if (!isSallyportError(error, 'engine_not_found')) throw error;
  }
}
