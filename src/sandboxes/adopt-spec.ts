/**
 * A sandbox that is there and is asked for by another spec (R4): what can be changed while it runs is changed, everything else is
 * for its caller to decide.
 */

import { profiles } from '../policy/profiles.ts';
import { specDifferences } from '../policy/spec-identity.ts';
import { defaultImage, imageSetting } from '../protocol/default-image.ts';
import { type PortSpec, writePort } from '../protocol/port-spec.ts';
import type { EgressSpec, Spec } from '../protocol/spec.ts';
import type { PublishedPorts } from './published-ports.ts';
import type { RecordKeeper } from './record-keeper.ts';
import type { SandboxRecord } from './records.ts';
import type { SandboxNet } from './sandbox-net.ts';

/** Whether it has a gate at all, its tokens and its way out are decided when it is made. */
const live = /^(labels|idle_ttl|max_lifetime|ports|egress\.(allow|deny|presets|mode))(\.|$)/;

/** The fields that need a new container. `isDiskLive`: the disk limit does not. */
export function fixedDifferences(before: Spec, now: Spec, isDiskLive: boolean): readonly string[] {
  const compared = (spec: Spec): Spec => withUsedImage(isDiskLive ? withoutDisk(spec) : spec);
  return specDifferences(compared(before), compared(now)).filter((field) => !live.test(field));
}

/** A default that another field overrides makes no difference. */
function withUsedImage(spec: Spec): Spec {
  const image = defaultImage(spec);
  return { ...spec, images: image === undefined ? undefined : { [imageSetting(spec.profile)]: image } };
}

/** Also in the limit of a service. */
export const differsInDisk = (before: Spec, now: Spec): boolean =>
  specDifferences(before, now).length > specDifferences(withoutDisk(before), withoutDisk(now)).length;

function withoutDisk(spec: Spec): Spec {
  const { required_services: required = [], optional_services: optional = [] } = spec;
  return {
    ...withoutLimit(spec),
    required_services: required.map(withoutLimit),
    optional_services: optional.map(withoutLimit),
  };
}

function withoutLimit<T extends { readonly limits?: { readonly disk?: number | undefined } | undefined }>(
  limited: T,
): T {
  const { disk: _, ...limits } = limited.limits ?? {};
  return { ...limited, limits };
}

/** With no fixed difference between the two. Ports first: they are what may fail. */
export async function adoptSpec(
  spec: Spec,
  parts: {
    readonly keeper: RecordKeeper;
    readonly net: SandboxNet;
    readonly ports: PublishedPorts;
    readonly timesChanged: () => void;
  },
): Promise<void> {
  const { keeper, net, ports } = parts;
  const { record } = keeper;
  const differences = specDifferences(record.spec, spec);
  if (differences.length === 0) return;
  const isReady = record.state === 'READY';
  const added = lost(spec.ports, record.spec.ports);
  for (const port of added) ports.requirePublishable(port);
  for (const port of lost(record.spec.ports, spec.ports)) {
    const published = record.ports?.find(
      ({ box, host }) => box === port.box && (port.host === undefined || port.host === host),
    );
    if (published !== undefined) ports.unpublish(published.host);
  }
  for (const port of added) await ports.publish(port);
  // They come back with it.
  if (!isReady) ports.closeAll();
  const { name } = record.spec;
  keeper.note({ spec: { ...spec, ...(name === undefined ? {} : { name }) } });
  if (record.spec.limits?.disk !== spec.limits?.disk) keeper.note(withDisk(record, spec));
  if (differences.some((field) => field.startsWith('egress'))) await net.replace(egressAfter(record, spec));
  parts.timesChanged();
}

/** A changed spec replaces a limit that `start` set. */
function withDisk({ plan }: SandboxRecord, { limits }: Spec): Partial<SandboxRecord> {
  const diskBytes = limits?.disk ?? profiles[plan.profile].diskBytes;
  return { plan: { ...plan, limits: { ...plan.limits, diskBytes } }, diskBytes: undefined };
}

/** Those of the first that the second has not. */
function lost(these: readonly PortSpec[] = [], those: readonly PortSpec[] = []): readonly PortSpec[] {
  const others = new Set(those.map(writePort));
  return these.filter((port) => !others.has(writePort(port)));
}

/** What a person allowed or denied meanwhile stays: that was about this sandbox. */
function egressAfter({ egress: changed, spec: before }: SandboxRecord, { egress = {} }: Spec): EgressSpec {
  const added = (use: 'allow' | 'deny') => {
    const known = new Set((before.egress?.[use] ?? []).map((rule) => JSON.stringify(rule)));
    return (changed?.[use] ?? []).filter((rule) => !known.has(JSON.stringify(rule)));
  };
  return {
    ...egress,
    allow: [...(egress.allow ?? []), ...added('allow')],
    deny: [...(egress.deny ?? []), ...added('deny')],
  };
}
