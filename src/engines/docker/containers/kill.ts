import type { CallOptions, EngineConnection } from '../wire/connection.ts';
import { pathSegment } from '../wire/path-segment.ts';

export async function killContainer(
  connection: EngineConnection,
  id: string,
  signal: string,
  options: CallOptions = {},
): Promise<void> {
  await connection.json<void>({
    method: 'POST',
    path: `/containers/${pathSegment(id)}/kill`,
    query: { signal },
    ...options,
  });
}
