import { isSallyportError, SallyportError } from '../../../protocol/errors.ts';
import type { ImagePath } from '../../../sandboxes/ports.ts';
import type { CallOptions, EngineConnection } from '../wire/connection.ts';
import { pathSegment } from '../wire/path-segment.ts';

/** The engine tells a file's mode as Go numbers it: the kind in the high bits, and the permissions below. */
const goDirectory = 2 ** 31;
const goOther = 2 ** 27 + 2 ** 26 + 2 ** 25 + 2 ** 24 + 2 ** 21 + 2 ** 19;
const goSticky = 2 ** 20;

/** Of `path` itself, never of what a link at its end leads to. Undefined when there is nothing. */
export async function statArchive(
  connection: EngineConnection,
  id: string,
  path: string,
  options: CallOptions = {},
): Promise<ImagePath | undefined> {
  try {
    const answer = await connection.stream({
      method: 'HEAD',
      path: `/containers/${pathSegment(id)}/archive`,
      query: { path },
      ...options,
    });
    answer.resume();
    return readStat(answer.headers['x-docker-container-path-stat'], path);
  } catch (error) {
    if (isSallyportError(error, 'engine_not_found')) return undefined;
    throw error;
  }
}

export function readStat(header: string | string[] | undefined, path: string): ImagePath {
  try {
    const text = Buffer.from(String(header), 'base64').toString('utf8');
    const { mode, size } = JSON.parse(text) as { mode: unknown; size: unknown };
    if (typeof mode !== 'number' || typeof size !== 'number') throw new Error('no mode or no size');
    const has = (bits: number): boolean => (mode & bits) !== 0;
    return {
      kind: has(goOther) ? 'other' : has(goDirectory) ? 'directory' : 'file',
      mode: (mode & 0o777) + (has(goSticky) ? 0o1000 : 0),
      sizeBytes: size,
    };
  } catch (cause) {
    throw new SallyportError('engine_protocol', `the engine does not tell what ${path} is`, { cause });
  }
}
