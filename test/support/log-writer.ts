/** A process that writes to an exec's log until it is killed: says on stdout, byte for byte, what it was told is safe. */

import { writeSync } from 'node:fs';
import { type ExecLogLimits, openExecLog } from '../../src/store/exec-log.ts';
import { channels } from '../../src/store/exec-log-reader.ts';
import { bytesAt } from './log-bytes.ts';

export type WriterArguments = readonly [folder: string, seed: string, limits: string];

const [folder, seedText, limitsText] = process.argv.slice(2) as unknown as WriterArguments;
const limits = JSON.parse(limitsText) as ExecLogLimits;

let seed = Number(seedText);
const random = (below: number): number => {
  seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
  return Math.floor((seed / 2 ** 31) * below);
};

const log = await openExecLog(folder, { limits });
// As porter does after a take-over: from what is stored on, and some of it again.
const next = { ...log.stored };
writeSync(1, `stored ${log.stored.stdout} ${log.stored.stderr}\n`);
for (const channel of channels) next[channel] = Math.max(0, next[channel] - random(5000));

for (;;) {
  const writes = Array.from({ length: 1 + random(6) }, async () => {
    const channel = random(3) === 0 ? 'stderr' : 'stdout';
    const length = 1 + random(random(4) === 0 ? 20_000 : 300);
    const offset = next[channel];
    next[channel] += length;
    await log.write(channel, offset, bytesAt(channel, offset, length));
    writeSync(1, `${channel} ${offset + length}\n`);
  });
  await Promise.all(writes);
}
