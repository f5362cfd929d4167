import type { CallOptions, EngineConnection } from '../wire/connection.ts';
import { Door } from '../wire/door.ts';
import { pathSegment } from '../wire/path-segment.ts';

/** Takes the container's stdin, stdout and stderr. Attach before start, or the first bytes are lost. */
export async function attachContainer(
  connection: EngineConnection,
  id: string,
  options: CallOptions = {},
): Promise<Door> {
  const socket = await connection.hijack({
    method: 'POST',
    path: `/containers/${pathSegment(id)}/attach`,
    query: { stream: true, stdin: true, stdout: true, stderr: true },
    ...options,
  });
  return new Door(socket, connection.endpoint);
}
