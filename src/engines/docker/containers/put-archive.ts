import type { Readable } from 'node:stream';
import type { CallOptions, EngineConnection } from '../wire/connection.ts';
import { pathSegment } from '../wire/path-segment.ts';

/**
 * Unpacks a tar stream below `path`, which must exist in the container. A folder in the place of a file, or the other way
 * round, is refused unless `replaceOtherKinds`.
 */
export async function putArchive(
  connection: EngineConnection,
  id: string,
  path: string,
  archive: Readable,
  options: CallOptions & { readonly replaceOtherKinds?: boolean } = {},
): Promise<void> {
  const { replaceOtherKinds = false, ...call } = options;
  await connection.json<void>({
    method: 'PUT',
    path: `/containers/${pathSegment(id)}/archive`,
    query: { path, noOverwriteDirNonDir: !replaceOtherKinds },
    headers: { 'Content-Type': 'application/x-tar' },
    upload: archive,
    ...call,
  });
}
