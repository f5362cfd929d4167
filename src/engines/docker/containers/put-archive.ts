import type { Readable } from 'node:stream';
import type { CallOptions, EngineConnection } from '../wire/connection.ts';
import { pathSegment } from '../wire/path-segment.ts';

/** Unpacks a tar stream below `path`, which must exist in the container. */
export async function putArchive(
  connection: EngineConnection,
  id: string,
  path: string,
  archive: Readable,
  options: CallOptions = {},
): Promise<void> {
  await connection.json<void>({
    method: 'PUT',
    path: `/containers/${pathSegment(id)}/archive`,
    query: { path, noOverwriteDirNonDir: true },
    headers: { 'Content-Type': 'application/x-tar' },
    upload: archive,
    ...options,
  });
}
