/**
 * Makes the folders of a sandbox that stand for folders of tools: copies of them, or empty ones. Made anew with every container: what
 * an earlier one changed in them went with it.
 *
 * A copy that is of use without content must not make a create slow: above a size it is left empty, and an event says so. So is one
 * that changes while it is read, as a cache does when the host uses it.
 */

import { lstatSync } from 'node:fs';
import { lstat } from 'node:fs/promises';
import type { LoadedEntry } from '../lib/host-tree.ts';
import { localDevice } from '../lib/local-disk.ts';
import { formatSize } from '../lib/sizes.ts';
import { Turns } from '../lib/turns.ts';
import type { PlannedShadow } from '../policy/tool-sources.ts';
import { isSallyportError } from '../protocol/errors.ts';
import { shadowEntries } from './copy-in.ts';
import { CopyTree, type Listing } from './copy-tree.ts';
import type { Materialisation } from './materialise.ts';
import type { SandboxWorld } from './world.ts';

/** Of one that may be empty: a few seconds of copying. */
export const mostCopied = { entries: 10_000, bytes: 256 * 2 ** 20 };

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
  const emptied = (await unfit(shadow)) ?? (await attempt(make, shadow, leftOut));
  if (emptied !== undefined) await make(none());
  signal.throwIfAborted();
  if (emptied !== undefined && source !== undefined) note('tool_starts_empty', emptyMessage(source, emptied));
  else if (leftOut.length > 0) note('tool_links_left_out', linksMessage(source, leftOut));
}

/** Undefined: it is made. Else why it is to be empty. */
async function attempt(
  make: (entries: AsyncIterable<LoadedEntry>) => Promise<void>,
  { source, excludes = [], mayBeEmpty }: PlannedShadow,
  leftOut: string[],
): Promise<string | undefined> {
  if (source === undefined) {
    await make(none());
    return undefined;
  }
  try {
    const entries = shadowEntries(source, excludes, (link) => leftOut.push(link));
    await make(mayBeEmpty === true ? bounded(entries) : entries);
    return undefined;
  } catch (error) {
    if (mayBeEmpty !== true) throw error;
    if (error instanceof TooLargeError) return error.message;
    if (isSallyportError(error, 'copy_changed') || isSallyportError(error, 'copy_unreadable'))
      return error.message;
    throw error;
  }
}

class TooLargeError extends Error {}

/** It may have grown since it was measured. */
async function* bounded(entries: AsyncIterable<LoadedEntry>): AsyncGenerator<LoadedEntry> {
  const count = new Count();
  for await (const entry of entries) {
    count.add(entry.kind === 'file' ? entry.sizeBytes : 0);
    yield entry;
  }
}

/** Why it is not copied at all; looks at names and sizes alone, and at no more of them than could be copied. */
async function unfit({ source, excludes = [], mayBeEmpty }: PlannedShadow): Promise<string | undefined> {
  if (source === undefined || mayBeEmpty !== true) return undefined;
  const tree = new CopyTree(source, { patterns: excludes, from: [] });
  const count = new Count();
  const turns = new Turns();
  const measure = async ({ entries, rules }: Listing, sizeOf: SizeOf): Promise<void> => {
    for (const { path, entry } of entries) {
      await turns.take();
      count.add(entry.isFile() ? await sizeOf(tree.absolute(path)) : 0);
      if (entry.isDirectory()) await measure(await tree.below(path, rules), sizeOf);
    }
  };
  try {
    const isLocal = (await localDevice(Buffer.from(source))) !== undefined;
    await measure(await tree.top(), isLocal ? sizeNow : sizeLater);
    return undefined;
  } catch (error) {
    if (error instanceof TooLargeError) return error.message;
    // What cannot be listed is found out again by the copy, which says it better.
    return undefined;
  }
}

type SizeOf = (path: Buffer) => number | Promise<number>;

const sizeNow: SizeOf = (path) => lstatSync(path, { throwIfNoEntry: false })?.size ?? 0;
const sizeLater: SizeOf = async (path) =>
  await lstat(path).then(
    ({ size }) => size,
    () => 0,
  );

class Count {
  #entries = 0;
  #bytes = 0;

  add(bytes: number): void {
    this.#entries += 1;
    this.#bytes += bytes;
    if (this.#entries > mostCopied.entries)
      throw new TooLargeError(`it has more than ${mostCopied.entries} files and folders`);
    if (this.#bytes > mostCopied.bytes)
      throw new TooLargeError(`it is larger than ${formatSize(mostCopied.bytes)}`);
  }
}

async function* none(): AsyncGenerator<LoadedEntry> {}

const emptyMessage = (source: string, why: string): string =>
  `${source} was not copied, and is empty inside at first: ${why}. Prune it on this machine, or share it with mode shared`;

function linksMessage(source: string | undefined, links: readonly string[]): string {
  const shown = links.slice(0, 10).join(', ');
  return `the copy of ${source} is without ${links.length} links that lead out of it: ${shown}`;
}
