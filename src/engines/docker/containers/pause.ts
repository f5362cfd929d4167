import type { CallOptions, EngineConnection } from '../wire/connection.ts';
import { pathSegment } from '../wire/path-segment.ts';

/** Freezes all processes. The engine refuses it for a container that does not run, or is paused already. */
export async function pauseContainer(
  connection: EngineConnection,
  id: string,
  options: CallOptions = {},
): Promise<void> {
  await connection.json<void>({
    method: 'POST',
    path: `/containers/${pathSegment(id)}/pause`,
    ...options,
  });
}
