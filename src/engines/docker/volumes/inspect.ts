import { isSallyportError } from '../../../protocol/errors.ts';
import type { CallOptions, EngineConnection } from '../wire/connection.ts';

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
    const body = await connection.json<{ Name: string; Labels: Record<string, string> | null }>({
      method: 'GET',
      path: `/volumes/${name}`,
      ...options,
    });
    return { name: body.Name, labels: body.Labels ?? {} };
  } catch (error) {
    if (isSallyportError(error, 'engine_not_found')) return undefined;
    throw error;
  }
}
