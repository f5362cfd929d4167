import type { Readable } from 'node:stream';
import type { CallOptions, EngineConnection } from '../wire/connection.ts';
import { pathSegment } from '../wire/path-segment.ts';

/** A tar stream of `path`, read from the engine only as fast as it is consumed. */
export async function getArchive(
  connection: EngineConnection,
  id: string,
  path: string,
  options: CallOptions = {},
): Promise<Readable> {
  return await connection.stream({
    method: 'GET',
    path: `/containers/${pathSegment(id)}/archive`,
    query: { path },
    ...options,
  });
}
