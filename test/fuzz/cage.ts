/** Builds and runs cage.c: the only way in which the fuzzers run a porter. */

import { type ChildProcess, type StdioOptions, spawn, spawnSync } from 'node:child_process';
import { mkdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { packageInfo } from '../../src/lib/package-root.ts';

export interface Caged {
  readonly child: ChildProcess;
  /** Its stdio, then one for each relay. Nothing is started for a relay before the first byte. */
  readonly doors: ReadonlyArray<{ readonly in: NodeJS.WritableStream; readonly out: NodeJS.ReadableStream }>;
  readonly relays: readonly Duplex[];
  /** TERM, from whoever started the program. */
  readonly stop: () => void;
}

export function buildCage(): string {
  const { root } = packageInfo();
  const folder = join(root, '.cache', 'fuzz');
  mkdirSync(folder, { recursive: true });
  const cage = join(folder, 'cage');
  const made = `${cage}.${process.pid}`;
  const { status } = spawnSync(
    'gcc',
    ['-O1', '-Wall', '-Wextra', '-Werror', '-o', made, join(root, 'test', 'fuzz', 'cage.c')],
    { stdio: 'inherit' },
  );
  if (status !== 0) throw new Error('test/fuzz/cage.c does not compile');
  // Another run may be using the one that is there.
  renameSync(made, cage);
  return cage;
}

/** Some machines give an ordinary user no namespaces. */
export function canCage(): boolean {
  const stdio: StdioOptions = ['ignore', 'ignore', 'ignore', 'pipe'];
  return spawnSync(buildCage(), ['/bin/true', '0'], { stdio }).status === 0;
}

/** What the sanitizers of a process have to say goes to a file: a worker has no stderr. The cage prints them all. */
const sanitizerEnvironment = {
  ASAN_OPTIONS: 'detect_leaks=1:exitcode=99:log_path=/reports/asan',
  UBSAN_OPTIONS: 'print_stacktrace=1:log_path=/reports/ubsan',
};

export function runCaged(
  cage: string,
  program: string,
  options: { readonly relays?: number; readonly args?: readonly string[] } = {},
): Caged {
  const { relays = 0, args = [] } = options;
  const child = spawn(cage, [program, String(relays), ...args], {
    stdio: ['pipe', 'pipe', 'pipe', 'pipe', ...Array.from({ length: relays }, () => 'pipe' as const)],
    env: sanitizerEnvironment,
  });
  const extra = (child.stdio as unknown as readonly Duplex[]).slice(3);
  const [control, ...sockets] = extra;
  if (child.stdin === null || child.stdout === null || control === undefined) throw new Error('no pipes');
  // A host may write to a door that is closed already.
  for (const stream of [child.stdin, ...extra]) stream.on('error', () => {});
  return {
    child,
    doors: [
      { in: child.stdin, out: child.stdout },
      ...sockets.map((socket) => ({ in: socket, out: socket })),
    ],
    relays: sockets,
    stop: () => void control.end(),
  };
}
