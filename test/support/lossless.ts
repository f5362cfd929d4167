/** Kills the host again and again while a program writes, and says what arrived. */

import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect } from 'vitest';
import type { ExecResult } from '../../src/porter/exec.ts';
import { bundleProgram } from './child-program.ts';
import type { FileHostOrder } from './file-host.ts';
import { full } from './requires.ts';

const lineBytes = 16;
const lines = (full ? 200_000_000 : 20_000_000) / lineBytes;
const kills = full ? 50 : 10;

/** The same numbers in each run: a failure can be had again. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

export async function loseNothing(
  door: (index: number) => FileHostOrder['door'],
  seed: number,
): Promise<void> {
  const { folder, outfile } = await bundleProgram('./file-host.ts');
  const file = join(folder, 'output');
  writeFileSync(file, '');
  const token = randomBytes(32).toString('hex');
  const argv = ['bash', '-c', `seq -f %015.0f ${lines}; exit 7`] as const;
  const host = (index: number): ChildProcess => {
    const order: FileHostOrder = { door: door(index), epoch: index + 1, token, file, argv };
    return spawn(process.execPath, [outfile, JSON.stringify(order)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
  };
  const random = seeded(seed);
  const targets = Array.from({ length: kills }, () => Math.floor(random() * lines * lineBytes * 0.98)).sort(
    (a, b) => a - b,
  );
  for (const [index, target] of targets.entries()) {
    const child = host(index);
    const exited = once(child, 'exit');
    while (statSync(file).size < target && child.exitCode === null)
      await new Promise((resolve) => setImmediate(resolve));
    child.kill('SIGKILL');
    expect((await exited)[1]).toBe('SIGKILL');
  }
  const last = host(kills);
  if (last.stdout === null) throw new Error('no output');
  const result = JSON.parse(await text(last.stdout)) as ExecResult;
  expect(result).toMatchObject({ exitCode: 7, outputIncomplete: false, stdoutBytes: lines * lineBytes });
  expect(firstWrongLine(readFileSync(file))).toBeUndefined();
}

function firstWrongLine(output: Buffer): string | undefined {
  if (output.length !== lines * lineBytes) return `${output.length} bytes instead of ${lines * lineBytes}`;
  for (let line = 0; line < lines; line++) {
    const found = output.toString('latin1', line * lineBytes, (line + 1) * lineBytes);
    if (found !== `${String(line + 1).padStart(15, '0')}\n`)
      return `line ${line + 1}: ${JSON.stringify(found)}`;
  }
  return undefined;
}
