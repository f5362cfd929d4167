/**
 * Makes the folders of a sandbox that stand for folders of tools: copies of them, or empty ones. Made anew with every container: what
 * an earlier one changed in them went with it.
 *
 * A copy that is of use without content must not make a create slow: above a size it is left empty, and an event says so. So is one
 * that changes while it is read, as a cache does when the host uses it. Any other one that is too large is refused.
 */

import { lstatSync, type Stats } from 'node:fs';
import { lstat } from 'node:fs/promises';
import { holeBytesOf } from '../lib/hole-bound.ts';
import type { LoadedEntry } from '../lib/host-tree.ts';
import { localDevice } from '../lib/local-disk.ts';
import { isWrittenAsHole } from '../lib/sparse-writer.ts';
import { Turns } from '../lib/turns.ts';
import type { PlannedShadow } from '../policy/tool-sources.ts';
import { isSallyportError } from '../protocol/errors.ts';
import { shadowEntries } from './copy-in.ts';
import { boundsOf, CopyMeter } from './copy-meter.ts';
import { CopyTree, type Listing } from './copy-tree.ts';
import type { Materialisation } from './materialise.ts';
import type { SandboxWorld } from './world.ts';

type Work = Pick<Materialisation, 'record' | 'tell' | 'signal'>;

export async function makeShadows(world: SandboxWorld, work: Work): Promise<void> {
  const { shadows } = work.record().plan;
  for (const shadow of shadows) await makeShadow(world, work, shadow);
  if (shadows.length > 0) world.checkpoint('create.shadows');
}

/** For a container that is there: its folders are gone if the state folder was lost. */
export async function provideShadows(world: SandboxWorld, work: Work): Promise<void> {
  const { id, plan } = work.record();
  for (const shadow of plan.shadows) {
    const folder = world.store.shadowFolder(id, shadow.mountId);
    const isThere = await lstat(folder).then(
      () => true,
      () => false,
    );
    if (!isThere) await makeShadow(world, work, shadow);
  }
}

async function makeShadow(
  { store }: SandboxWorld,
  { record, tell, signal }: Work,
  shadow: PlannedShadow,
): Promise<void> {
  const { id, plan } = record();
  const { mountId, source } = shadow;
  const note = (code: string, message: string): void =>
    void store.events.append({ type: 'sandbox.note', sandbox_id: id, code, message });
  const make = (entries: AsyncIterable<LoadedEntry>) => store.makeShadow(id, mountId, entries, plan.user);
  const leftOut: string[] = [];
  if (source !== undefined) tell({ step: 'copy', message: `copying ${source}` });
  const emptied = (await unfit(shadow, signal)) ?? (await attempt(make, shadow, { leftOut, signal }));
  if (emptied !== undefined) await make(none());
  signal.throwIfAborted();
  if (emptied !== undefined && source !== undefined) note('tool_starts_empty', emptyMessage(source, emptied));
  else if (leftOut.length > 0) note('tool_links_left_out', linksMessage(source, leftOut));
}

/** Undefined: it is made. Else why it is to be empty. */
async function attempt(
  make: (entries: AsyncIterable<LoadedEntry>) => Promise<void>,
  shadow: PlannedShadow,
  { leftOut, signal }: { readonly leftOut: string[]; readonly signal: AbortSignal },
): Promise<string | undefined> {
  const { source, excludes = [] } = shadow;
  if (source === undefined) {
    await make(none());
    return undefined;
  }
  try {
    const entries = shadowEntries(source, excludes, (link) => leftOut.push(link));
    await make(bounded(entries, new CopyMeter(source, boundsOf(shadow)), signal));
    return undefined;
  } catch (error) {
    return reasonToBeEmpty(shadow, error);
  }
}

const toBeEmptyFor = ['copy_too_large', 'copy_changed', 'copy_unreadable'] as const;

/** Throws what is no such reason. */
function reasonToBeEmpty({ mayBeEmpty }: PlannedShadow, error: unknown): string {
  if (mayBeEmpty === true) {
    for (const code of toBeEmptyFor) if (isSallyportError(error, code)) return error.message;
  }
  throw error;
}

/** SECURITY: a program inside may write to the folder while it is copied, so what was measured before says little. */
async function* bounded(
  entries: AsyncIterable<LoadedEntry>,
  meter: CopyMeter,
  signal: AbortSignal,
): AsyncGenerator<LoadedEntry> {
  for await (const entry of entries) {
    signal.throwIfAborted();
    meter.addEntry(entry.path, entry.kind === 'file' ? entry.holeBytes : 0);
    if (entry.kind === 'file' && entry.content === undefined) {
      yield { ...entry, chunks: () => metered(entry, meter, signal) };
      continue;
    }
    if (entry.kind === 'file') meter.addData(entry.path, entry.sizeBytes);
    yield entry;
  }
}

async function* metered(
  { path, chunks }: Extract<LoadedEntry, { kind: 'file' }>,
  meter: CopyMeter,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  for await (const chunk of chunks()) {
    signal.throwIfAborted();
    meter.addData(path, isWrittenAsHole(chunk) ? 0 : chunk.length);
    yield chunk;
  }
}

/** Throws `copy_too_large` for a folder that is copied whole and is too large for it. Looks at names and sizes alone. */
export async function requireShadowsFit(
  shadows: readonly PlannedShadow[],
  signal?: AbortSignal,
): Promise<void> {
  for (const shadow of shadows) if (shadow.mayBeEmpty !== true) await measure(shadow, signal);
}

/** Why it is not copied at all; looks at no more of it than could be copied. */
async function unfit(shadow: PlannedShadow, signal: AbortSignal): Promise<string | undefined> {
  if (shadow.mayBeEmpty !== true) return undefined;
  try {
    await measure(shadow, signal);
    return undefined;
  } catch (error) {
    return reasonToBeEmpty(shadow, error);
  }
}

async function measure(shadow: PlannedShadow, signal?: AbortSignal): Promise<void> {
  const { source, excludes = [] } = shadow;
  if (source === undefined) return;
  const tree = new CopyTree(source, { patterns: excludes, from: [] });
  const meter = new CopyMeter(source, boundsOf(shadow));
  const turns = new Turns();
  const count = async ({ entries, rules }: Listing, factsOf: FactsOf): Promise<void> => {
    for (const { path, entry } of entries) {
      await turns.take();
      signal?.throwIfAborted();
      const facts = entry.isFile() ? await factsOf(tree.absolute(path)) : undefined;
      const holeBytes = facts === undefined ? 0 : holeBytesOf(facts);
      meter.addEntry(path, holeBytes);
      meter.addData(path, (facts?.size ?? 0) - holeBytes);
      if (entry.isDirectory()) await count(await tree.below(path, rules), factsOf);
    }
  };
  try {
    const isLocal = (await localDevice(Buffer.from(source))) !== undefined;
    await count(await tree.top(), isLocal ? factsNow : factsLater);
  } catch (error) {
    signal?.throwIfAborted();
    // What cannot be listed is found out again by the copy, which says it better.
    if (isSallyportError(error, 'copy_too_large')) throw error;
  }
}

type FactsOf = (path: Buffer) => Stats | undefined | Promise<Stats | undefined>;

const factsNow: FactsOf = (path) => lstatSync(path, { throwIfNoEntry: false });
const factsLater: FactsOf = async (path) => await lstat(path).catch(() => undefined);

async function* none(): AsyncGenerator<LoadedEntry> {}

const emptyMessage = (source: string, why: string): string =>
  `WARNING: ${source} was not copied, and is empty inside at first: ${why}. Prune it on this machine, or share it with mode shared`;

function linksMessage(source: string | undefined, links: readonly string[]): string {
  const shown = links.slice(0, 10).join(', ');
  return `the copy of ${source} is without ${links.length} links that lead out of it: ${shown}`;
}
