/** A sandbox as the API shows it. */

import type { SandboxView } from '../protocol/views.ts';
import { defaultIdleMs } from './life-watch.ts';
import type { SandboxRecord } from './records.ts';

export function sandboxView(record: SandboxRecord, runningExecs: number): SandboxView {
  const { spec, isolation, plan } = record;
  const { limits } = plan;
  return {
    id: record.id,
    name: record.name,
    state: record.state,
    sequence: record.sequence,
    created_at: record.createdAt,
    image: record.image,
    user: plan.user,
    workdir: plan.workdir,
    limits: { memory_bytes: limits.memoryBytes, cpus: limits.cpus, pids: limits.pids, nofile: limits.nofile },
    labels: spec.labels ?? {},
    isolation: {
      engine: isolation.engine,
      engine_version: isolation.engineVersion,
      runtime: isolation.runtime,
      profile: plan.profile,
      network: 'none',
    },
    ephemeral: record.ephemeral,
    running_execs: runningExecs,
    ...(record.reason === undefined ? {} : { reason: record.reason }),
    ...(record.startedAt === undefined ? {} : { started_at: record.startedAt }),
    ...(record.stoppedAt === undefined ? {} : { stopped_at: record.stoppedAt }),
    ...(record.containerId === undefined ? {} : { container_id: record.containerId }),
    ...workspace(record),
    ...times(record),
  };
}

function workspace({ spec }: SandboxRecord): Pick<SandboxView, 'workspace'> {
  if (spec.workspace === undefined) return {};
  const { path, target, mode } = spec.workspace;
  return { workspace: { path, target, mode } };
}

function times({ spec, createdAt }: SandboxRecord): Pick<SandboxView, 'idle_ttl_ms' | 'expires_at'> {
  const { idle_ttl: idle = defaultIdleMs, max_lifetime: most } = spec;
  return {
    ...(typeof idle === 'number' ? { idle_ttl_ms: idle } : {}),
    ...(typeof most === 'number' ? { expires_at: new Date(Date.parse(createdAt) + most).toISOString() } : {}),
  };
}
