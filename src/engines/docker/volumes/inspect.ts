import { isSallyportError } from '../../../protocol/errors.ts';
import type { CallOptions, EngineConnection } from '../wire/connection.ts';
import { pathSegment } from '../wire/path-segment.ts';

export interface Volume {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  /** As the engine writes it; one that was removed and made again has another. */
  readonly createdAt: string;
}

export interface VolumeBody {
  readonly Name: string;
  readonly Labels: Readonly<Record<string, string>> | null;
  readonly CreatedAt?: string;
}

export const readVolume = (body: VolumeBody): Volume => ({
  name: body.Name,
  labels: body.Labels ?? {},
  createdAt: body.CreatedAt ?? '',
});

export async function findVolume(
  connection: EngineConnection,
  name: string,
  options: CallOptions = {},
): Promise<Volume | undefined> {
  try {
    return await connection.json<VolumeBody, Volume>(
      {
        method: 'GET',
        path: `/volumes/${pathSegment(name)}`,
        ...options,
      },
      readVolume,
    );
  } catch (error) {
    if (isSallyportError(error, 'engine_not_found')) return undefined;
    throw error;
  }
}
