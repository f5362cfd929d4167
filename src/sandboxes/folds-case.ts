/** Whether a folder takes names for the same that differ in case, as those of macOS and Windows do. */

import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';

const most = 20;

const swapped = (name: string): string =>
  [...name].map((one) => (one === one.toLowerCase() ? one.toUpperCase() : one.toLowerCase())).join('');

/** By an entry that is found under both spellings. A folder without letters in it has nothing to be found. */
export async function foldsCase(folder: string): Promise<boolean> {
  const names = await readdir(folder).catch(() => []);
  for (const name of names.filter((one) => swapped(one) !== one).slice(0, most)) {
    const [one, other] = await Promise.all(
      [name, swapped(name)].map((each) => lstat(join(folder, each)).catch(() => undefined)),
    );
    if (one !== undefined) return other !== undefined && one.ino === other.ino && one.dev === other.dev;
  }
  return false;
}
