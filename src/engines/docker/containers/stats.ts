import type { CallOptions, EngineConnection } from '../wire/connection.ts';
import { pathSegment } from '../wire/path-segment.ts';

/** The part of the engine's answer that we read. Everything may be missing: a container that does not run uses nothing. */
export interface StatsBody {
  readonly memory_stats?: {
    readonly usage?: number;
    readonly limit?: number;
    readonly stats?: Readonly<Record<string, number>>;
  };
  readonly cpu_stats?: { readonly cpu_usage?: { readonly total_usage?: number } };
  readonly blkio_stats?: {
    readonly io_service_bytes_recursive?: readonly { readonly op: string; readonly value: number }[] | null;
  };
  readonly pids_stats?: { readonly current?: number };
}

/** One sample, taken now: without `one-shot` the engine waits for a second one to compare with. */
export async function containerStats(
  connection: EngineConnection,
  id: string,
  options: CallOptions = {},
): Promise<StatsBody> {
  return await connection.json<StatsBody | undefined, StatsBody>(
    {
      method: 'GET',
      path: `/containers/${pathSegment(id)}/stats`,
      query: { stream: false, 'one-shot': true },
      ...options,
    },
    // Podman answers with nothing at all for a container that does not run.
    (body) => body ?? {},
  );
}
