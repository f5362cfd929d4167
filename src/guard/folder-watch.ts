/** Tells whether a path still leads to the folder that it led to when this was made. */

import { statSync } from 'node:fs';

export function folderWatch(path: string): () => boolean {
  const before = identityAt(path);
  return () => before !== undefined && identityAt(path) === before;
}

/** With the time of birth: a number is given again when a folder is gone. */
function identityAt(path: string): string | undefined {
  const facts = statSync(path, { bigint: true, throwIfNoEntry: false });
  return facts === undefined ? undefined : `${facts.dev}:${facts.ino}:${facts.birthtimeNs}`;
}
