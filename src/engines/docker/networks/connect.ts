import type { CallOptions, EngineConnection } from '../wire/connection.ts';
import { pathSegment } from '../wire/path-segment.ts';

export async function connectToNetwork(
  connection: EngineConnection,
  network: string,
  request: { readonly container: string; readonly aliases: readonly string[] },
  options: CallOptions = {},
): Promise<void> {
  await connection.json<unknown>({
    method: 'POST',
    path: `/networks/${pathSegment(network)}/connect`,
    body: { Container: request.container, EndpointConfig: { Aliases: request.aliases } },
    ...options,
  });
}
