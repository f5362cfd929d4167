/** Reads files that others may have written: no folder, pipe or device, and none that is large. */

import { constants } from 'node:fs';
import { open } from 'node:fs/promises';

export interface SmallFileOptions {
  /** Default: 1 MiB. */
  readonly mostBytes?: number;
  /** Whether a link in the place of the file is followed. */
  readonly follow?: boolean;
}

/** Undefined: it is missing, too large or no file, or may not be read. */
export async function readSmall(
  path: string,
  { mostBytes = 1024 * 1024, follow = false }: SmallFileOptions = {},
): Promise<string | undefined> {
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants;
  const flags = O_RDONLY | O_NONBLOCK | (follow ? 0 : O_NOFOLLOW);
  const handle = await open(path, flags).catch(() => undefined);
  if (handle === undefined) return undefined;
  try {
    const facts = await handle.stat();
    if (!facts.isFile() || facts.size > mostBytes) return undefined;
    return await handle.readFile('utf8');
  } finally {
    await handle.close();
  }
}
