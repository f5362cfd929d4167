/** Whether a folder is on a disk of this machine, where blocking calls return. Elsewhere they may hang for ever. */

import { stat, statfs } from 'node:fs/promises';

/** ext, xfs, btrfs, f2fs, zfs, tmpfs, overlay. */
const localTypes: ReadonlySet<number> = new Set([
  0xef53, 0x58465342, 0x9123683e, 0xf2f52010, 0x2fc12fc1, 0x01021994, 0x794c7630,
]);

export const isLocalType = (type: number): boolean => localTypes.has(type);

/** The number of the file system; undefined: it is not known to be local. */
export async function localDevice(folder: Buffer): Promise<bigint | undefined> {
  const { type } = await statfs(folder);
  return isLocalType(type) ? (await stat(folder, { bigint: true })).dev : undefined;
}
