/**
 * Runs a program of the system as a child process with low priority and reads its output by lines.
 *
 * For walks over many files: in this process they would block its event loop, and a child can be killed.
 */

import { spawn } from 'node:child_process';
import { setPriority } from 'node:os';
import type { Readable } from 'node:stream';

export interface LowPriorityResult {
  readonly code: number | null;
  /** Lines on stderr, without those about files and processes that vanished during the walk. */
  readonly errors: number;
}

const lowPriority = 10;
const vanished = /No such (file or directory|process)$/;
const longestLine = 64 * 1024;

export async function runLowPriority(
  program: string,
  args: readonly string[],
  { onLine, signal }: { readonly onLine: (line: string) => void; readonly signal?: AbortSignal | undefined },
): Promise<LowPriorityResult> {
  const child = spawn(program, args, {
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
  let errors = 0;
  const onError = (line: string): void => {
    if (!vanished.test(line)) errors++;
  };
  const [code] = await Promise.race([
    failure,
    Promise.all([ended, readLines(child.stdout, onLine), readLines(child.stderr, onError)]),
  ]);
  return { code, errors };
}

function lowerPriority(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    setPriority(pid, lowPriority);
  } catch {
    // The process has already ended.
  }
}

async function readLines(stream: Readable, onLine: (line: string) => void): Promise<void> {
  let rest = '';
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    const lines = `${rest}${chunk.toString('latin1')}`.split('\n');
    rest = (lines.pop() ?? '').slice(0, longestLine);
    for (const line of lines) onLine(line);
  }
  if (rest !== '') onLine(rest);
}
