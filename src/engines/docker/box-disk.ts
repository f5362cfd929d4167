/** Disk usage of a container, and the size limit that the kernel enforces. */

import { access, constants } from 'node:fs/promises';
import { type FolderUse, folderUse } from '../../lib/folder-use.ts';
import { parseSize } from '../../lib/sizes.ts';
import { isSallyportError, SallyportError } from '../../protocol/errors.ts';
import type { DiskHold, DiskUseOptions } from '../../sandboxes/ports.ts';
import { type ContainerDisk, containerDisk } from './containers/disk.ts';
import { containerSize } from './containers/size.ts';
import { volumeUsage } from './volumes/usage.ts';
import type { EngineConnection } from './wire/connection.ts';

const nothing: FolderUse = { amount: 0, isComplete: true };

export async function boxDiskHold(connection: EngineConnection, id: string): Promise<DiskHold> {
  const { storageSize, volumes } = await containerDisk(connection, id);
  const rootBytes = storageSize === undefined ? undefined : parseSize(storageSize);
  return { hasVolumes: volumes.length > 0, ...(rootBytes === undefined ? {} : { rootBytes }) };
}

export async function boxDiskUse(
  connection: EngineConnection,
  id: string,
  options: DiskUseOptions,
): Promise<FolderUse> {
  try {
    const disk = await containerDisk(connection, id, signalOf(options));
    const root = await rootUse(connection, id, disk, options);
    const volumes = await volumesUse(connection, disk, options);
    return [root, ...volumes].reduce((sum, { amount, isComplete }) => ({
      amount: sum.amount + amount,
      isComplete: sum.isComplete && isComplete,
    }));
  } catch (error) {
    if (isSallyportError(error, 'engine_not_found')) return nothing;
    throw error;
  }
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
  if (upperFolder !== undefined && (await isReadable(upperFolder)))
    return await folderUse(upperFolder, options);
  if (options.of === 'bytes')
    return { amount: await containerSize(connection, id, signalOf(options)), isComplete: true };
  throw new SallyportError('engine_unsupported', 'the engine does not count the files of a container');
}

async function volumesUse(
  connection: EngineConnection,
  { volumes }: ContainerDisk,
  options: DiskUseOptions,
): Promise<readonly FolderUse[]> {
  const readable = await Promise.all(volumes.map(({ folder }) => isReadable(folder)));
  // The engine measures all volumes in one call, and only their bytes.
  const isAsked = options.of === 'bytes' && readable.includes(false);
  const told = isAsked ? await volumeUsage(connection, signalOf(options)) : undefined;
  return await Promise.all(
    volumes.map(async ({ name, folder }, index) => {
      if (readable[index] === true) return await folderUse(folder, options);
      const amount = told?.get(name);
      return { amount: amount ?? 0, isComplete: amount !== undefined };
    }),
  );
}

async function isReadable(folder: string): Promise<boolean> {
  try {
    await access(folder, constants.R_OK | constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
