import type { CallOptions, EngineConnection } from '../wire/connection.ts';
import { labelFilter } from '../wire/filters.ts';

export interface Network {
  readonly id: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
}

export async function listNetworks(
  connection: EngineConnection,
  labels: readonly [string, ...string[]],
  options: CallOptions = {},
): Promise<readonly Network[]> {
  const rows = await connection.json<
    Array<{ Id: string; Name: string; Labels: Record<string, string> | null }>
  >({
    method: 'GET',
    path: '/networks',
    query: { filters: labelFilter(labels) },
    ...options,
  });
  return rows.map((row) => ({ id: row.Id, name: row.Name, labels: row.Labels ?? {} }));
}
