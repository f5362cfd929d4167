/** Free disk space where the engine and Sallyport keep their data. */

import { statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { formatSize } from '../../lib/sizes.ts';
import type { Check } from './check.ts';

const warnBelowBytes = 10 * 2 ** 30;
const failBelowBytes = 2 * 2 ** 30;

export interface DiskSpace {
  readonly folder: string;
  /** Undefined where the folder cannot be seen: a remote engine, one in a virtual machine, or no right to look. */
  readonly freeBytes: number | undefined;
}

export function checkDisk(id: string, title: string, { folder, freeBytes }: DiskSpace): Check {
  if (freeBytes === undefined)
    return { id, title, status: 'ok', value: `${folder} is not visible from here` };
  const value = `${formatSize(freeBytes)} free for ${folder}`;
  if (freeBytes >= warnBelowBytes) return { id, title, status: 'ok', value };
  const status = freeBytes < failBelowBytes ? 'fail' : 'warn';
  return {
    id,
    title,
    status,
    value,
    advice: 'Free some space; `docker system df` shows what the engine uses.',
  };
}

/** Of the folder, or of the nearest one above it that is there: that is where it would be made. */
export async function freeBytesAt(folder: string): Promise<number | undefined> {
  try {
    const { bavail, bsize } = await statfs(folder);
    return bavail * bsize;
  } catch (error) {
    const isMissing = error instanceof Error && 'code' in error && error.code === 'ENOENT';
    return isMissing && folder !== dirname(folder) ? await freeBytesAt(dirname(folder)) : undefined;
  }
}
