/** Disk usage of a container, what it wrote, and the size limit that the kernel enforces. */

import { access, constants, readFile } from 'node:fs/promises';
import { deletedFilesUse } from '../../lib/deleted-files.ts';
import { type FolderUse, folderUse } from '../../lib/folder-use.ts';
import { namespaceProcesses, writtenBytes } from '../../lib/namespace-processes.ts';
import { parseSize } from '../../lib/sizes.ts';
import { isSallyportError, SallyportError } from '../../protocol/errors.ts';
import type { DiskHold, DiskUse, DiskUseOptions } from '../../sandboxes/ports.ts';
import { type ContainerDisk, containerDisk } from './containers/disk.ts';
import { containerSize } from './containers/size.ts';
import { containerStats } from './containers/stats.ts';
import { volumeUsage } from './volumes/usage.ts';
import type { EngineConnection } from './wire/connection.ts';

const nothing: FolderUse = { amount: 0, isComplete: true };

export async function boxDiskHold(connection: EngineConnection, id: string): Promise<DiskHold | undefined> {
  const disk = await unlessMissing(containerDisk(connection, id));
  if (disk === undefined) return undefined;
  const { storageSize, volumes } = disk;
  const rootBytes = storageSize === undefined ? undefined : parseSize(storageSize);
  return { hasVolumes: volumes.length > 0, ...(rootBytes === undefined ? {} : { rootBytes }) };
}

export async function boxDiskUse(
  connection: EngineConnection,
  id: string,
  options: DiskUseOptions,
): Promise<DiskUse> {
  const use = await unlessMissing(measure(connection, id, options));
  return use ?? { ...nothing, hasDeleted: true };
}

/** The larger one of two counts: control groups of version 1 miss buffered writes, and processes that ended may be missing in the other. */
export async function boxDiskWritten(
  connection: EngineConnection,
  id: string,
  signal?: AbortSignal,
): Promise<number | undefined> {
  const options = signal === undefined ? {} : { signal };
  const [stats, { pid } = {}] = await Promise.all([
    unlessMissing(containerStats(connection, id, options)),
    unlessMissing(containerDisk(connection, id, options)),
  ]);
  const byGroup = (stats?.blkio_stats?.io_service_bytes_recursive ?? [])
    .filter(({ op }) => op.toLowerCase() === 'write')
    .reduce<number | undefined>((sum, { value }) => (sum ?? 0) + value, undefined);
  const pids = pid === undefined ? undefined : await processesOf(id, pid);
  const byProcesses = pids === undefined ? undefined : await writtenBytes(pids);
  if (byGroup === undefined) return byProcesses;
  return Math.max(byGroup, byProcesses ?? 0);
}

async function unlessMissing<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if (isSallyportError(error, 'engine_not_found')) return undefined;
    throw error;
  }
}

async function measure(connection: EngineConnection, id: string, options: DiskUseOptions): Promise<DiskUse> {
  const disk = await containerDisk(connection, id, signalOf(options));
  const root = await rootUse(connection, id, disk, options);
  const volumes = await volumesUse(connection, disk, options);
  const deleted = await deletedUse(id, disk, options);
  const named = [root, ...volumes].reduce((sum, { amount, isComplete }) => ({
    amount: sum.amount + amount,
    isComplete: sum.isComplete && isComplete,
  }));
  return { ...named, amount: named.amount + deleted.amount, hasDeleted: deleted.isComplete };
}

const signalOf = ({ signal }: DiskUseOptions) => (signal === undefined ? {} : { signal });

/**
 * Measures the upper folder if this process may read it, because `du` counts blocks. An engine adds up file lengths: 100,000 files of two
 * bytes are 0.2 MB (400 MB on the disk), and a sparse file of 1 TB is 1 TB.
 */
async function rootUse(
  connection: EngineConnection,
  id: string,
  { upperFolder }: ContainerDisk,
  options: DiskUseOptions,
): Promise<FolderUse> {
  // The engine generates long random folder names, so an existing folder belongs to this engine.
  const isReadable = upperFolder !== undefined && (await mayList(upperFolder));
  const walked = isReadable ? await folderUse(upperFolder, options) : undefined;
  if (walked?.isComplete === true) return walked;
  // A rootless engine belongs to the user of this process, but folders in it may belong to ids that only the engine can read.
  if (options.of === 'bytes') {
    const amount = await containerSize(connection, id, signalOf(options));
    return { amount: Math.max(amount, walked?.amount ?? 0), isComplete: true };
  }
  if (walked !== undefined) return walked;
  throw new SallyportError('engine_unsupported', 'the engine does not count the files of a container');
}

async function volumesUse(
  connection: EngineConnection,
  { volumes }: ContainerDisk,
  options: DiskUseOptions,
): Promise<readonly FolderUse[]> {
  const walked = await Promise.all(
    volumes.map(async ({ folder }) =>
      (await mayList(folder)) ? await folderUse(folder, options) : undefined,
    ),
  );
  // The engine measures all volumes in one call, and only their bytes.
  const isAsked = options.of === 'bytes' && walked.some((use) => use?.isComplete !== true);
  const told = isAsked ? await volumeUsage(connection, signalOf(options)) : undefined;
  return volumes.map(({ name }, index) => {
    const use = walked[index];
    if (use?.isComplete === true) return use;
    const amount = told?.get(name);
    return { amount: Math.max(amount ?? 0, use?.amount ?? 0), isComplete: amount !== undefined };
  });
}

async function deletedUse(
  id: string,
  { pid, upperFolder, volumes, binds }: ContainerDisk,
  { of, signal }: DiskUseOptions,
): Promise<FolderUse> {
  if (pid === undefined) return nothing;
  const pids = await processesOf(id, pid);
  if (pids === undefined) return { amount: 0, isComplete: false };
  const folders = [upperFolder, ...volumes.map(({ folder }) => folder)].filter((path) => path !== undefined);
  const on = [`/proc/${pid}/root`, ...folders];
  return await deletedFilesUse({ pids, of, on, except: binds, signal });
}

/** Undefined: the engine is on another machine, or this process may not see the processes. */
async function processesOf(id: string, pid: number): Promise<readonly number[] | undefined> {
  // The number may belong to any process here if the engine is elsewhere. Engines name control groups by the container.
  const groups = await readFile(`/proc/${pid}/cgroup`, 'latin1').catch(() => '');
  return groups.includes(id) ? await namespaceProcesses(pid) : undefined;
}

async function mayList(folder: string): Promise<boolean> {
  try {
    await access(folder, constants.R_OK | constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
