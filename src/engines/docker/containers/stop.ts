import type { CallOptions, EngineConnection } from '../wire/connection.ts';
import { pathSegment } from '../wire/path-segment.ts';

/** TERM, then KILL after `graceSeconds`. Stopping a container that does not run is not an error. */
export async function stopContainer(
  connection: EngineConnection,
  id: string,
  graceSeconds: number,
  options: CallOptions = {},
): Promise<void> {
  await connection.json<void>({
    method: 'POST',
    path: `/containers/${pathSegment(id)}/stop`,
    query: { t: graceSeconds },
    timeoutMs: (graceSeconds + 30) * 1000,
    ...options,
  });
}
