import { isSallyportError } from '../../../protocol/errors.ts';
import type { CallOptions, EngineConnection } from '../wire/connection.ts';
import { pathSegment } from '../wire/path-segment.ts';

export interface Volume {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
}

export async function findVolume(
  connection: EngineConnection,
  name: string,
  options: CallOptions = {},
): Promise<Volume | undefined> {
  try {
    return await connection.json<{ Name: string; Labels: Record<string, string> | null }, Volume>(
      {
        method: 'GET',
        path: `/volumes/${pathSegment(name)}`,
        ...options,
      },
      (body) => ({ name: body.Name, labels: body.Labels ?? {} }),
    );
  } catch (error) {
    if (isSallyportError(error, 'engine_not_found')) return undefined;
    throw error;
  }
}
