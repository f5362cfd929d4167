import type { CallOptions, EngineConnection } from '../wire/connection.ts';
import { labelFilter } from '../wire/filters.ts';
import { readVolume, type Volume, type VolumeBody } from './inspect.ts';

export async function listVolumes(
  connection: EngineConnection,
  labels: readonly [string, ...string[]],
  options: CallOptions = {},
): Promise<readonly Volume[]> {
  return await connection.json<
    {
      Volumes: readonly VolumeBody[] | null;
    },
    readonly Volume[]
  >(
    {
      method: 'GET',
      path: '/volumes',
      query: { filters: labelFilter(labels) },
      ...options,
    },
    (body) => (body.Volumes ?? []).map(readVolume),
  );
}
