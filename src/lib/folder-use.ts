/**
 * Disk usage of a folder: allocated blocks, or number of files.
 *
 * `du` does not follow links, stays on one file system and counts hard links once. It finds files by their names;
 * `deleted-files.ts` counts those that have none.
 */

import { runLowPriority } from './low-priority.ts';

export interface FolderUse {
  /** Bytes, or files. */
  readonly amount: number;
  /** False: some folders could not be read, so `amount` may be too low. */
  readonly isComplete: boolean;
}

export async function folderUse(
  folder: string,
  { of, signal }: { readonly of: 'bytes' | 'files'; readonly signal?: AbortSignal },
): Promise<FolderUse> {
  let first: string | undefined;
  const { code, errors } = await runLowPriority(
    'du',
    ['-s', '-x', of === 'bytes' ? '-k' : '--inodes', '--', folder],
    {
      onLine: (line) => {
        first ??= line;
      },
      signal,
    },
  );
  const number = /^(\d+)\s/.exec(first ?? '')?.[1];
  if (number === undefined) throw new Error(`du ${folder} ended with ${code} and printed no size`);
  return { amount: Number(number) * (of === 'bytes' ? 1024 : 1), isComplete: errors === 0 };
}
