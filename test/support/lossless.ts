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
import { tellFigures } from './figures.ts';
import type { FileHostOrder } from './file-host.ts';
import { full } from './requires.ts';
import { until } from './until.ts';

const lineBytes = 16;
const fullSize = { bytes: 200_000_000, kills: 50 };

export interface LossTrial {
  readonly name: string;
  readonly seed: number;
  /** In the plain run; the full one is the same everywhere. */
  readonly bytes?: number;
  readonly kills?: number;
  /** How the host of that index reaches porter. */
  readonly door: (index: number) => FileHostOrder['door'];
}

/** The same numbers in each run: a failure can be had again. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

export async function loseNothing(trial: LossTrial): Promise<void> {
  const { bytes, kills } = full ? fullSize : { bytes: 20_000_000, kills: 10, ...trial };
  const lines = bytes / lineBytes;
  const { folder, outfile } = await bundleProgram('./file-host.ts');
  const file = join(folder, 'output');
  writeFileSync(file, '');
  const token = randomBytes(32).toString('hex');
  const argv = ['bash', '-c', `seq -f %015.0f ${lines}; exit 7`] as const;
  const host = (index: number): ChildProcess => {
    const order: FileHostOrder = { door: trial.door(index), epoch: index + 1, token, file, argv };
    return spawn(process.execPath, [outfile, JSON.stringify(order)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
  };
  const random = seeded(trial.seed);
  const targets = Array.from({ length: kills }, () => Math.floor(random() * bytes * 0.98)).sort(
    (a, b) => a - b,
  );
  const from = performance.now();
  for (const [index, target] of targets.entries()) await hostUntil(host(index), file, target);
  const last = host(kills);
  if (last.stdout === null) throw new Error('no output');
  const result = JSON.parse(await text(last.stdout)) as ExecResult;
  tellFigures(`${trial.name} lost nothing`, { bytes, kills, seconds: (performance.now() - from) / 1000 });
  expect(result).toMatchObject({ exitCode: 7, outputIncomplete: false, stdoutBytes: bytes });
  expect(firstWrongLine(readFileSync(file), lines)).toBeUndefined();
}

/** Lets it live until the file is that long, and not a moment longer. */
async function hostUntil(child: ChildProcess, file: string, target: number): Promise<void> {
  const exited = once(child, 'exit');
  // Where the target is reached already, it is killed wherever it is on its way into the sandbox.
  await until(() => statSync(file).size >= target || child.exitCode !== null);
  child.kill('SIGKILL');
  expect((await exited)[1]).toBe('SIGKILL');
}

function firstWrongLine(output: Buffer, lines: number): string | undefined {
  if (output.length !== lines * lineBytes) return `${output.length} bytes instead of ${lines * lineBytes}`;
  for (let line = 0; line < lines; line++) {
    const found = output.toString('latin1', line * lineBytes, (line + 1) * lineBytes);
    if (found !== `${String(line + 1).padStart(15, '0')}\n`)
      return `line ${line + 1}: ${JSON.stringify(found)}`;
  }
  return undefined;
}
