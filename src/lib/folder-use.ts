/**
 * Disk usage of a folder: allocated blocks, or number of files.
 *
 * Runs `du` as a child process with low priority, because walking 100,000 files in this process would block its event loop, and a
 * child can be killed. `du` does not follow links, stays on one file system and counts hard links once.
 */

import { spawn } from 'node:child_process';
import { setPriority } from 'node:os';
import type { Readable } from 'node:stream';

export interface FolderUse {
  /** Bytes, or files. */
  readonly amount: number;
  /** False: some folders could not be read, so `amount` may be too low. */
  readonly isComplete: boolean;
}

const lowPriority = 10;
/** Files may be removed during the walk. */
const vanished = 'No such file or directory';

export async function folderUse(
  folder: string,
  { of, signal }: { readonly of: 'bytes' | 'files'; readonly signal?: AbortSignal },
): Promise<FolderUse> {
  const child = spawn('du', ['-s', '-x', of === 'bytes' ? '-k' : '--inodes', '--', folder], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: '/usr/bin:/bin', LC_ALL: 'C' },
    ...(signal === undefined ? {} : { signal, killSignal: 'SIGKILL' }),
  });
  lowerPriority(child.pid);
  const failure = new Promise<never>((_, reject) => {
    child.once('error', reject);
  });
  const ended = new Promise<number | null>((resolve) => {
    child.once('close', resolve);
  });
  const [text, errors, code] = await Promise.race([
    failure,
    Promise.all([firstLine(child.stdout), countErrors(child.stderr), ended]),
  ]);
  const number = /^(\d+)\s/.exec(text)?.[1];
  if (number === undefined) throw new Error(`du ${folder} ended with ${code} and printed no size`);
  return { amount: Number(number) * (of === 'bytes' ? 1024 : 1), isComplete: errors === 0 };
}

function lowerPriority(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    setPriority(pid, lowPriority);
  } catch {
    // The process has already ended.
  }
}

async function firstLine(stream: Readable): Promise<string> {
  let text = '';
  for await (const chunk of stream as AsyncIterable<Buffer>) if (text.length < 100) text += chunk.toString();
  return text;
}

/** Counts lines that report anything but a vanished file. `du` escapes line feeds in names. */
async function countErrors(stream: Readable): Promise<number> {
  let rest = '';
  let count = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    const lines = `${rest}${chunk.toString('latin1')}`.split('\n');
    rest = lines.pop() ?? '';
    count += lines.filter((line) => !line.endsWith(vanished)).length;
  }
  return count + (rest === '' ? 0 : 1);
}
