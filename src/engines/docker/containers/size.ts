import type { CallOptions, EngineConnection } from '../wire/connection.ts';
import { pathSegment } from '../wire/path-segment.ts';

/** The engine walks all files of the container. */
const walkMs = 120_000;

/** The size of a container's writable layer as the engine counts it. Most storage drivers add up file lengths, also of sparse files. */
export async function containerSize(
  connection: EngineConnection,
  id: string,
  options: CallOptions = {},
): Promise<number> {
  return await connection.json<{ readonly SizeRw?: number }, number>(
    {
      method: 'GET',
      path: `/containers/${pathSegment(id)}/json`,
      query: { size: 'true' },
      timeoutMs: walkMs,
      ...options,
    },
    ({ SizeRw }) => SizeRw ?? 0,
  );
}
