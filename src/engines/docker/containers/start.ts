import type { CallOptions, EngineConnection } from '../wire/connection.ts';
import { pathSegment } from '../wire/path-segment.ts';

/** Starting a container that runs already is not an error. */
export async function startContainer(
  connection: EngineConnection,
  id: string,
  options: CallOptions = {},
): Promise<void> {
  await connection.json<void>({
    method: 'POST',
    path: `/containers/${pathSegment(id)}/start`,
    timeoutMs: 60_000,
    ...options,
  });
}
