import type { ContainerBody } from '../types.ts';
import type { CallOptions, EngineConnection } from '../wire/connection.ts';

export async function createContainer(
  connection: EngineConnection,
  request: { readonly name?: string; readonly platform?: string; readonly body: ContainerBody },
  options: CallOptions = {},
): Promise<string> {
  return await connection.json<{ Id: string }, string>(
    {
      method: 'POST',
      path: '/containers/create',
      query: { name: request.name, platform: request.platform },
      body: request.body,
      notFound: 'image_missing',
      timeoutMs: 60_000,
      ...options,
    },
    (answer) => answer.Id.toString(),
  );
}
