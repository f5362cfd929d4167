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
  return await connection.json<
    Array<{ Id: string; Name: string; Labels: Record<string, string> | null }>,
    readonly Network[]
  >(
    {
      method: 'GET',
      path: '/networks',
      query: { filters: labelFilter(labels) },
      ...options,
    },
    (rows) => rows.map((row) => ({ id: row.Id, name: row.Name, labels: row.Labels ?? {} })),
  );
}
