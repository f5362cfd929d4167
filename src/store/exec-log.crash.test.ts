import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { describe, expect, it } from 'vitest';
import { bundleProgram } from '../../test/support/child-program.ts';
import { temporaryFolder } from '../../test/support/little-engine.ts';
import { bytesAt } from '../../test/support/log-bytes.ts';
import type { WriterArguments } from '../../test/support/log-writer.ts';
import { openExecLog } from './exec-log.ts';
import { channels } from './exec-log-reader.ts';
import type { Offsets } from './segment.ts';

const rounds = 30;

/** Writes until it has acknowledged so many times, and is killed then, whatever it is doing. */
async function writeAndKill(program: string, args: WriterArguments, lines: number) {
  const child = spawn(process.execPath, [program, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  const gone = once(child, 'exit');
  const safe: Offsets = { stdout: 0, stderr: 0 };
  let begun: Offsets | undefined;
  let seen = 0;
  for await (const line of createInterface({ input: child.stdout })) {
    const [what, first, second] = line.split(' ');
    if (what === 'stored') begun = { stdout: Number(first), stderr: Number(second) };
    for (const channel of channels)
      if (what === channel) safe[channel] = Math.max(safe[channel], Number(first));
    if (++seen === lines) child.kill('SIGKILL');
  }
  expect((await gone)[1]).toBe('SIGKILL');
  return { begun, safe };
}

describe('the log of an exec whose daemon is killed', () => {
  it(`[A16] loses and doubles nothing, killed ${rounds} times at any point`, {
    timeout: 300_000,
  }, async () => {
    const { outfile } = await bundleProgram('./log-writer.ts');
    // Small, so that kills meet new segments and dropped ones as well.
    const limits = { segmentBytes: 30_000, segmentRuns: 200, segments: 4, recentBytes: 0 };
    let folder = '';
    let before: Offsets = { stdout: 0, stderr: 0 };
    for (let round = 0; round < rounds; round++) {
      if (round % 10 === 0) {
        folder = join(temporaryFolder(), 'log');
        before = { stdout: 0, stderr: 0 };
      }
      const lines = 1 + Math.floor(Math.random() * 150);
      const args: WriterArguments = [
        folder,
        String(Math.floor(Math.random() * 2 ** 30)),
        JSON.stringify(limits),
      ];
      const { begun, safe } = await writeAndKill(outfile, args, lines);
      expect(begun).toEqual(before);

      const log = await openExecLog(folder, { limits });
      const position: Offsets = { stdout: 0, stderr: 0 };
      for await (const piece of log.read()) {
        expect(piece.offset).toBe(position[piece.channel]);
        if ('data' in piece) {
          expect(piece.data.equals(bytesAt(piece.channel, piece.offset, piece.data.length))).toBe(true);
          position[piece.channel] += piece.data.length;
        } else {
          position[piece.channel] += piece.droppedBytes;
        }
      }
      expect(position).toEqual(log.stored);
      for (const channel of channels) expect(log.stored[channel]).toBeGreaterThanOrEqual(safe[channel]);
      before = { ...log.stored };
      await log.close();
    }
  });

  it('cuts off data that the index does not know, at every length of a torn index', async () => {
    const folder = join(temporaryFolder(), 'log');
    const first = await openExecLog(folder);
    await first.write('stdout', 0, Buffer.from('known'));
    await first.write('stderr', 0, Buffer.from('torn'));
    await first.close();
    const [index, data] = [join(folder, '000000.idx'), join(folder, '000000.out')];
    const [wholeIndex, wholeData] = [readFileSync(index), readFileSync(data)];
    expect(wholeIndex.length).toBe(96);
    for (let length = 64; length < 96; length++) {
      writeFileSync(index, wholeIndex);
      writeFileSync(data, wholeData);
      truncateSync(index, length);
      appendFileSync(data, 'not even begun');
      const log = await openExecLog(folder);
      expect(log.stored).toEqual({ stdout: 5, stderr: 0 });
      expect(readFileSync(data, 'utf8')).toBe('known');
      expect(readFileSync(index).length).toBe(64);
      await log.close();
    }
    // Nothing is left of a segment whose first line is torn.
    for (let length = 0; length < 32; length++) {
      writeFileSync(index, wholeIndex.subarray(0, length));
      const log = await openExecLog(folder);
      expect(log.stored).toEqual({ stdout: 0, stderr: 0 });
      expect(readdirSync(folder)).toEqual([]);
      await log.close();
    }
  });
});
