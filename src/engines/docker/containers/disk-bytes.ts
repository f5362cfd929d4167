import { isSallyportError } from '../../../protocol/errors.ts';
import type { CallOptions, EngineConnection } from '../wire/connection.ts';
import { pathSegment } from '../wire/path-segment.ts';

/** What a container has written over its image. 0 for one that is not there. */
export async function containerBytes(
  connection: EngineConnection,
  id: string,
  options: CallOptions = {},
): Promise<number> {
  try {
    return await connection.json<{ readonly SizeRw?: number }, number>(
      { method: 'GET', path: `/containers/${pathSegment(id)}/json`, query: { size: 'true' }, ...options },
      ({ SizeRw }) => SizeRw ?? 0,
    );
  } catch (error) {
    if (isSallyportError(error, 'engine_not_found')) return 0;
    throw error;
  }
}
