/** [G5] A memory limit of one command, against programs that allocate as fast as the machine can. */

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import type { Porter } from '../../src/porter/porter.ts';
import { tellFigures } from '../support/figures.ts';
import { temporaryFolder } from '../support/little-engine.ts';
import { connectPorter, descendants, runIn, startPorter } from '../support/porter-child.ts';
import { asRoot, when } from '../support/selection.ts';

const mebibyte = 2 ** 20;
const limit = 256;

function allocator(): string {
  const program = join(temporaryFolder(), 'allocator');
  const source = fileURLToPath(new URL('../support/allocator.c', import.meta.url));
  execFileSync('gcc', ['-O2', '-static', '-o', program, source]);
  return program;
}

/** MiB that all its processes had when it was killed. */
async function writtenBy(
  porter: Porter,
  program: string,
  { processes, pace }: { readonly processes: number; readonly pace: number },
): Promise<number> {
  const counters = `${program}.counters`;
  const result = await runIn(porter, [program, counters, String(processes), String(pace)], {
    memoryLimitBytes: limit * mebibyte,
  });
  expect(result).toMatchObject({ memoryLimitExceeded: true, signal: 9 });
  const bytes = readFileSync(counters);
  return Array.from({ length: bytes.length / 4 }, (_, at) => bytes.readUInt32LE(4 * at)).reduce(
    (a, b) => a + b,
  );
}

const middle = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;

/** As in a sandbox: a look costs by the number of processes that porter sees. */
const alone = ['unshare', '--pid', '--fork', '--kill-child', '--mount-proc'];

when(asRoot).describe('[G5] a memory limit', () => {
  it.each([
    ['one that grows by 2 GiB a second', { processes: 1, pace: 2 }],
    ['two that grow by 4 GiB a second each', { processes: 2, pace: 4 }],
    ['four as fast as they can', { processes: 4, pace: 0 }],
  ])('holds %s', async (name, how) => {
    const porter = await connectPorter(startPorter(['--exit-with-host'], alone));
    const program = allocator();
    const written: number[] = [];
    for (let round = 0; round < 9; round++) written.push(await writtenBy(porter, program, how));
    tellFigures(`memory limit of ${limit} MiB, ${name}`, {
      medianMebibytes: middle(written),
      mostMebibytes: Math.max(...written),
    });
    expect(middle(written)).toBeGreaterThanOrEqual(limit - 32);
    expect(middle(written)).toBeLessThan(1.25 * limit);
    // What is above it is grown while porter waits for a processor: at the fastest pace, 32 ms of it. A busy machine lets it wait longer now and then.
    expect(written.filter((mebibytes) => mebibytes >= 2 * limit).length).toBeLessThan(3);
  });

  it('costs little while a program stays just below it', async () => {
    const child = startPorter(['--exit-with-host'], alone);
    const porter = await connectPorter(child);
    const [own] = descendants(child.child.pid ?? 0);
    const stat = (): number => {
      const fields = readFileSync(`/proc/${own}/stat`, 'utf8')
        .replace(/^.*\) /s, '')
        .split(' ');
      return Number(fields[11]) + Number(fields[12]);
    };
    const script = `x = b"x" * ${(limit - 16) * mebibyte}; import time; time.sleep(3)`;
    const before = stat();
    const result = await runIn(porter, ['python3', '-c', script], { memoryLimitBytes: limit * mebibyte });
    expect(result).toMatchObject({ memoryLimitExceeded: false, exitCode: 0 });
    // In hundredths of a second: a tenth of the time at most.
    expect(stat() - before).toBeLessThan(30);
  });
});
