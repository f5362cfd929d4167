import type { CallOptions, EngineConnection } from '../wire/connection.ts';
import { pathSegment } from '../wire/path-segment.ts';

/** Lets frozen processes go on. The engine refuses it for a container that is not paused. */
export async function unpauseContainer(
  connection: EngineConnection,
  id: string,
  options: CallOptions = {},
): Promise<void> {
  await connection.json<void>({
    method: 'POST',
    path: `/containers/${pathSegment(id)}/unpause`,
    ...options,
  });
}
