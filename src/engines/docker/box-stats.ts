/** What a box uses, out of the engine's sample. Pure. */

import type { BoxStats } from '../../sandboxes/ports.ts';
import type { StatsBody } from './containers/stats.ts';

/** Undefined: the sample is of a box that does not run. */
export function boxStats(body: StatsBody): BoxStats | undefined {
  const { usage, limit } = body.memory_stats ?? {};
  if (usage === undefined || limit === undefined) return undefined;
  return {
    memoryBytes: memoryWithoutCache(usage, body.memory_stats?.stats ?? {}),
    memoryLimitBytes: limit,
    cpuSeconds: (body.cpu_stats?.cpu_usage?.total_usage ?? 0) / 1e9,
    pids: body.pids_stats?.current ?? 0,
  };
}

/**
 * As `docker stats` counts: file pages that the kernel would give back at once are not the box's. Control groups of
 * version 1 name them `total_inactive_file`, those of version 2 `inactive_file`, and version 1 has both names, where
 * `inactive_file` leaves out the groups below. Podman sends neither.
 */
function memoryWithoutCache(usage: number, stats: Readonly<Record<string, number>>): number {
  const cache = stats['total_inactive_file'] ?? stats['inactive_file'] ?? 0;
  return cache < usage ? usage - cache : usage;
}
