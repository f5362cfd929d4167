/** Runs `scripts/fresh-machine.mjs` and finds what it left. */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { packageInfo } from '../../src/lib/package-root.ts';

export interface MachineRun {
  readonly child: ChildProcess;
  readonly output: () => string;
  readonly ended: Promise<number | null>;
}

/** `more`: further arguments of the script. */
export function startMachine(machine: string, script: string, ...more: readonly string[]): MachineRun {
  const program = join(packageInfo().root, 'scripts/fresh-machine.mjs');
  const child = spawn(process.execPath, [program, machine, '--script', script, ...more], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  onTestFinished(() => void child.kill('SIGTERM'));
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (bytes: Buffer) => {
      output += bytes.toString();
    });
  const ended = once(child, 'close').then(([code]) => code as number | null);
  return { child, output: () => output, ended };
}

/** Folders of the machine that this process made, and processes that carry `mark` or its folder in their command line. */
export function tracesOf({ child }: MachineRun, mark: string): readonly string[] {
  const own = `sallyport-fresh-${child.pid}-`;
  const folders = readdirSync('/var/tmp').filter((name) => name.startsWith(own));
  const processes = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(commandLine)
    .filter((line) => line.includes(mark) || line.includes(own));
  return [...folders, ...processes];
}

function commandLine(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
  } catch {
    return '';
  }
}
