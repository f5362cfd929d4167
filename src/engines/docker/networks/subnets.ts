import type { CallOptions, EngineConnection } from '../wire/connection.ts';

interface NetworkBody {
  readonly IPAM?: { readonly Config?: ReadonlyArray<{ readonly Subnet?: string }> | null } | null;
}

/** Of every network of the engine. They are read and never touched: most belong to others. */
export async function networkSubnets(
  connection: EngineConnection,
  options: CallOptions = {},
): Promise<readonly string[]> {
  return await connection.json<NetworkBody[], readonly string[]>(
    { method: 'GET', path: '/networks', ...options },
    (rows) => rows.flatMap(({ IPAM }) => (IPAM?.Config ?? []).flatMap(({ Subnet }) => Subnet ?? [])),
  );
}
