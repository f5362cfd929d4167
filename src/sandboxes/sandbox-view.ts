/** A sandbox as the API shows it. */

import { type WantedService, wantedServices } from '../policy/services.ts';
import { isolationLevel, strongestRuntime } from '../protocol/isolation-level.ts';
import type { PortView, SandboxView, ServiceView } from '../protocol/views.ts';
import { defaultIdleMs } from './life-watch.ts';
import type { SandboxRecord } from './records.ts';
import { diskLimitOf } from './sandbox-disk.ts';

export function sandboxView(
  record: SandboxRecord,
  now: {
    readonly runningExecs: number;
    readonly ports: readonly PortView[];
    readonly disk: SandboxView['disk'];
  },
): SandboxView {
  const { runningExecs, ports, disk } = now;
  const { spec, isolation, plan } = record;
  const { limits } = plan;
  const wanted = wantedServices(spec);
  return {
    id: record.id,
    name: record.name,
    state: record.state,
    sequence: record.sequence,
    created_at: record.createdAt,
    image: record.image,
    user: plan.user,
    workdir: plan.workdir,
    limits: {
      memory_bytes: limits.memoryBytes,
      cpus: limits.cpus,
      pids: limits.pids,
      nofile: limits.nofile,
      disk_bytes: diskLimitOf(record),
    },
    disk,
    labels: spec.labels ?? {},
    isolation: {
      engine: isolation.engine,
      engine_version: isolation.engineVersion,
      runtime: isolation.runtime,
      ...(isolation.runtime === strongestRuntime ? {} : { level: isolationLevel(isolation.runtime) }),
      profile: plan.profile,
      network: wanted.length === 0 ? 'none' : 'services',
      ...(isolation.weaker === undefined ? {} : { weaker: [...isolation.weaker] }),
    },
    services: wanted.map((service) => serviceView(record, service)),
    ports: [...ports],
    ephemeral: record.ephemeral,
    running_execs: runningExecs,
    ...(record.reason === undefined ? {} : { reason: record.reason }),
    ...(record.startedAt === undefined ? {} : { started_at: record.startedAt }),
    ...(record.stoppedAt === undefined ? {} : { stopped_at: record.stoppedAt }),
    ...(record.containerId === undefined ? {} : { container_id: record.containerId }),
    ...(plan.egress === true ? { egress: { mode: (record.egress ?? spec.egress)?.mode ?? 'deny' } } : {}),
    ...workspace(record),
    ...times(record),
  };
}

/** One that is not begun yet is known from the spec. */
function serviceView(record: SandboxRecord, { name, required, image }: WantedService): ServiceView {
  const known = record.services?.find((service) => service.name === name);
  return {
    name,
    required,
    image,
    state: known?.state ?? (record.state === 'PENDING' ? 'PENDING' : 'STOPPED'),
    ...(known?.reason === undefined ? {} : { reason: known.reason }),
    ...(known?.containerId === undefined ? {} : { container_id: known.containerId }),
  };
}

function workspace({ spec }: SandboxRecord): Pick<SandboxView, 'workspace'> {
  if (spec.workspace === undefined) return {};
  const { path, target, mode, branch } = spec.workspace;
  return { workspace: { path, target, mode, ...(branch === undefined ? {} : { branch }) } };
}

function times({ spec, createdAt }: SandboxRecord): Pick<SandboxView, 'idle_ttl_ms' | 'expires_at'> {
  const { idle_ttl: idle = defaultIdleMs, max_lifetime: most } = spec;
  return {
    ...(typeof idle === 'number' ? { idle_ttl_ms: idle } : {}),
    ...(typeof most === 'number' ? { expires_at: new Date(Date.parse(createdAt) + most).toISOString() } : {}),
  };
}
