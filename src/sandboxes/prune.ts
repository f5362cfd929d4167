/**
 * R5: what of this owner's nobody needs any more, and why: sandboxes, services, networks, volumes. It removes only what carries
 * our labels, and never changes that exist nowhere else: a sandbox that has some is named and kept.
 */

import { isSallyportError } from '../protocol/errors.ts';
import { label } from '../protocol/labels.ts';
import type { KnownVolume } from './ports.ts';
import { agentOf } from './prune-agent.ts';
import { pruneReason, retentionReason } from './retention.ts';
import type { Sandbox } from './sandbox.ts';
import type { SandboxWorld } from './world.ts';

const day = 86_400_000;
/** A porter that other daemons of this machine may have made a moment ago stays. */
const leastPorterAgeMs = day;
const usualPorterAgeMs = 7 * day;

export interface PruneOptions {
  readonly dryRun: boolean;
  /** Sandboxes that were stopped so long ago go as well. Absent: the usual retention. */
  readonly olderThanMs?: number;
  /** Only sandboxes of this agent. Absent: all, and what lost its sandbox. */
  readonly agent?: string;
}

export interface PrunedThing {
  readonly kind: 'sandbox' | 'service' | 'network' | 'volume';
  readonly id: string;
  readonly name: string;
  readonly why: string;
  readonly sizeBytes: number;
  readonly outcome: 'removed' | 'would_be_removed' | 'kept';
  /** Why it was kept. */
  readonly note?: string;
}

export interface Prunable {
  readonly sandboxes: readonly Sandbox[];
  readonly isKnown: (sandboxId: string) => boolean;
}

export async function pruneAll(
  world: SandboxWorld,
  { sandboxes, isKnown }: Prunable,
  options: PruneOptions,
): Promise<readonly PrunedThing[]> {
  const nowMs = Date.parse(world.now());
  const gone: PrunedThing[] = [];
  for (const sandbox of sandboxes) {
    if (options.agent !== undefined && agentOf(sandbox.record.spec) !== options.agent) continue;
    const why =
      (await pruneReason(sandbox.record)) ?? retentionReason(sandbox.record, nowMs, options.olderThanMs);
    if (why !== undefined) gone.push(await pruneSandbox(world, sandbox, why, options));
  }
  // What lost its sandbox no longer says which agent that was for.
  if (options.agent !== undefined) return gone;
  return [...gone, ...(await pruneOrphans(world, isKnown, nowMs, options))];
}

async function pruneSandbox(
  { engine }: SandboxWorld,
  sandbox: Sandbox,
  why: string,
  { dryRun }: PruneOptions,
): Promise<PrunedThing> {
  const { id, name } = sandbox;
  const { containerId } = sandbox.record;
  const sizeBytes = containerId === undefined ? 0 : await bytesOf(engine, containerId);
  const thing = { kind: 'sandbox' as const, id, name, why, sizeBytes };
  try {
    if (dryRun) await sandbox.requireNoChanges();
    else await sandbox.remove({ force: false });
    return { ...thing, outcome: dryRun ? 'would_be_removed' : 'removed' };
  } catch (error) {
    // Also where it cannot be told whether there are changes: then there may be.
    return { ...thing, outcome: 'kept', note: noteOf(error, name) };
  }
}

const bytesOf = async (engine: SandboxWorld['engine'], boxId: string): Promise<number> =>
  (await engine.diskUse(boxId, { of: 'bytes' })).amount;

const noteOf = (error: unknown, name: string): string =>
  isSallyportError(error)
    ? `${error.message}; \`sally rm --force ${name}\` removes it`
    : 'it could not be removed; daemon.log has the details';

interface Orphan {
  readonly kind: 'service' | 'network' | 'volume';
  readonly id: string;
  readonly name: string;
  readonly why: string;
  readonly sizeBytes: number;
  /** False: something uses it. */
  readonly remove: () => Promise<boolean>;
}

/** Services before the networks that they are on. */
async function pruneOrphans(
  world: SandboxWorld,
  isKnown: Prunable['isKnown'],
  nowMs: number,
  { dryRun, olderThanMs }: PruneOptions,
): Promise<readonly PrunedThing[]> {
  const report: PrunedThing[] = [];
  for (const find of [orphanServices, orphanNetworks]) {
    for (const orphan of await find(world, isKnown)) report.push(await pruneOrphan(world, orphan, dryRun));
  }
  for (const volume of await world.engine.volumes(world.owner)) {
    const why = volumeReason(volume, isKnown, nowMs, olderThanMs);
    if (why === undefined) continue;
    const { name } = volume;
    const remove = async () => await world.engine.removeVolume(name);
    const orphan: Orphan = { kind: 'volume', id: name, name, why, sizeBytes: 0, remove };
    report.push(await pruneOrphan(world, orphan, dryRun));
  }
  return report;
}

const isOrphan = (
  { labels }: { readonly labels: Readonly<Record<string, string>> },
  isKnown: Prunable['isKnown'],
): boolean => !isKnown(labels[label.id] ?? '');

const whyOrphan = 'its sandbox is gone';

async function orphanServices(
  { services, engine, owner }: SandboxWorld,
  isKnown: Prunable['isKnown'],
): Promise<readonly Orphan[]> {
  const found = (await services.list(owner)).filter((one) => isOrphan(one, isKnown));
  return await Promise.all(
    found.map(async ({ id, labels }) => ({
      kind: 'service' as const,
      id,
      name: labels[label.service] ?? id.slice(0, 12),
      why: whyOrphan,
      sizeBytes: await bytesOf(engine, id),
      remove: async () => {
        await engine.remove(id);
        return true;
      },
    })),
  );
}

async function orphanNetworks(
  { services, owner }: SandboxWorld,
  isKnown: Prunable['isKnown'],
): Promise<readonly Orphan[]> {
  const found = (await services.networks(owner)).filter((one) => isOrphan(one, isKnown));
  return found.map(({ id, name }) => ({
    kind: 'network' as const,
    id,
    name,
    why: whyOrphan,
    sizeBytes: 0,
    remove: async () => {
      await services.removeNetwork(id);
      return true;
    },
  }));
}

/** Undefined: it stays. */
export function volumeReason(
  { labels, createdAt, isCurrent }: KnownVolume,
  isKnown: Prunable['isKnown'],
  nowMs: number,
  olderThanMs = usualPorterAgeMs,
): string | undefined {
  if (labels[label.owner] !== undefined) {
    const sandbox = labels[label.id];
    return sandbox !== undefined && !isKnown(sandbox) ? whyOrphan : undefined;
  }
  if (labels[label.kind] !== 'porter' || isCurrent) return undefined;
  const ageMs = nowMs - Date.parse(createdAt);
  // One whose age is not known is not old.
  return ageMs > Math.max(olderThanMs, leastPorterAgeMs) ? 'it holds porter of another version' : undefined;
}

async function pruneOrphan(
  world: SandboxWorld,
  { remove, ...thing }: Orphan,
  dryRun: boolean,
): Promise<PrunedThing> {
  if (dryRun) return { ...thing, outcome: 'would_be_removed' };
  try {
    if (await remove()) return { ...thing, outcome: 'removed' };
    return { ...thing, outcome: 'kept', note: 'something uses it' };
  } catch (error) {
    world.report(`prune ${thing.kind} ${thing.name}`, error);
    return { ...thing, outcome: 'kept', note: 'it could not be removed; daemon.log has the details' };
  }
}
