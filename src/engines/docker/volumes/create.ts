import type { Labels } from '../types.ts';
import type { CallOptions, EngineConnection } from '../wire/connection.ts';

/** Creating a volume that exists already returns it as it is: check the labels before trusting it. */
export async function createVolume(
  connection: EngineConnection,
  request: { readonly name: string; readonly labels: Labels },
  options: CallOptions = {},
): Promise<void> {
  await connection.json<unknown>({
    method: 'POST',
    path: '/volumes/create',
    body: { Name: request.name, Labels: request.labels },
    ...options,
  });
}
