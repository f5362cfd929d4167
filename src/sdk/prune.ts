/** `sally prune` for programs: removes what is no longer needed, and reports what and why. */

import type { PruneInput } from '../protocol/requests.ts';
import type { PruneView } from '../protocol/views.ts';
import { type Camelled, camelled } from './case.ts';
import { type ConnectionOptions, DaemonClient } from './client.ts';

/** Each thing that was removed, would be removed, or was kept because it holds unapplied changes; and the bytes freed. */
export type PruneResult = Camelled<PruneView>;

export interface PruneOptions {
  /** Only report. */
  readonly dryRun?: boolean;
  /** Remove sandboxes that were stopped or failed this long ago. Default: stopped 15 days, failed 1 day. */
  readonly olderThanMs?: number;
  /** Only sandboxes of this agent, with what belongs to them; `agent_unknown` if no such agent exists. */
  readonly agent?: string;
  readonly signal?: AbortSignal;
}

export async function prune(
  options: PruneOptions = {},
  connection: ConnectionOptions & { readonly client?: DaemonClient } = {},
): Promise<PruneResult> {
  const { dryRun = false, olderThanMs, agent, signal } = options;
  const body: PruneInput = { dry_run: dryRun, older_than_ms: olderThanMs, agent };
  const client = connection.client ?? new DaemonClient(connection);
  try {
    const cancel = signal === undefined ? {} : { signal };
    return camelled(await client.json<PruneView>('POST', '/v1/prune', { body, ...cancel }));
  } finally {
    if (connection.client === undefined) client.close();
  }
}
