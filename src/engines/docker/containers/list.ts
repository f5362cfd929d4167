import type { CallOptions, EngineConnection } from '../wire/connection.ts';
import { labelFilter } from '../wire/filters.ts';

export interface ListedContainer {
  readonly id: string;
  readonly names: readonly string[];
  readonly state: string;
  readonly createdSeconds: number;
  readonly labels: Readonly<Record<string, string>>;
}

interface ListBody {
  readonly Id: string;
  readonly Names: string[];
  readonly State: string;
  readonly Created: number;
  readonly Labels: Record<string, string> | null;
}

/** Running or not, all that carry every one of `labels` (`key` or `key=value`). At least one is needed: see A12. */
export async function listContainers(
  connection: EngineConnection,
  labels: readonly [string, ...string[]],
  options: CallOptions = {},
): Promise<readonly ListedContainer[]> {
  return await connection.json<ListBody[], readonly ListedContainer[]>(
    {
      method: 'GET',
      path: '/containers/json',
      query: { all: true, filters: labelFilter(labels) },
      ...options,
    },
    (rows) =>
      rows.map((row) => ({
        id: row.Id,
        names: row.Names.map((name) => name.replace(/^\//, '')),
        state: row.State,
        createdSeconds: row.Created,
        labels: row.Labels ?? {},
      })),
  );
}
