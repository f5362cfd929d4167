/** [N1] The bare machines on which CI tries Sallyport: what they reach, and that nothing of them is left. */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { packageInfo } from '../../src/lib/package-root.ts';
import { commandExists, requirement } from '../support/requires.ts';
import { asRoot, realClients, when } from '../support/selection.ts';
import { until } from '../support/until.ts';

interface Run {
  readonly child: ChildProcess;
  readonly output: () => string;
  readonly ended: Promise<number | null>;
}

function startMachine(script: string): Run {
  const program = join(packageInfo().root, 'scripts/fresh-machine.mjs');
  const child = spawn(process.execPath, [program, 'debian-12', '--script', script], {
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

/** Folders and processes of the machine that this process made. */
function tracesOf({ child }: Run): readonly string[] {
  const own = `sallyport-fresh-${child.pid}-`;
  const folders = readdirSync('/var/tmp').filter((name) => name.startsWith(own));
  const processes = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => commandLine(pid).includes('of-the-fresh-machine-test'));
  return [...folders, ...processes.map(commandLine)];
}

function commandLine(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
  } catch {
    return '';
  }
}

const hasMmdebstrap = requirement('mmdebstrap', commandExists('mmdebstrap'));
const waiting = 'echo begun; exec sleep 1000 # of-the-fresh-machine-test';

when(realClients, asRoot, hasMmdebstrap).describe('[N1] a fresh machine', { timeout: 600_000 }, () => {
  it('has a Node.js, reaches the mirrors and no other address, and leaves nothing', async () => {
    const script = [
      'node --version',
      'npm ping >/dev/null 2>&1 && echo mirror reached',
      `node -e "require('net').connect(443, '198.51.100.1').on('error', (error) => console.log(error.code))"`,
      'ls /dev | wc -l',
    ].join('; ');
    const run = startMachine(script);
    expect(await run.ended, run.output()).toBe(0);
    expect(run.output()).toMatch(/^v20\./m);
    expect(run.output()).toContain('mirror reached');
    expect(run.output()).toContain('ENETUNREACH');
    expect(tracesOf(run)).toEqual([]);
  });

  it('leaves nothing after Ctrl-C, and the next one removes what a kill left', async () => {
    const interrupted = startMachine(waiting);
    await until(() => interrupted.output().includes('begun'));
    interrupted.child.kill('SIGINT');
    expect(await interrupted.ended, interrupted.output()).toBe(130);
    expect(tracesOf(interrupted)).toEqual([]);

    const killed = startMachine(waiting);
    await until(() => killed.output().includes('begun'));
    killed.child.kill('SIGKILL');
    await killed.ended;
    await until(() => tracesOf(killed).every((trace) => trace.startsWith('sallyport-fresh-')));
    const next = startMachine('true');
    expect(await next.ended, next.output()).toBe(0);
    expect(tracesOf(killed)).toEqual([]);
  });
});
