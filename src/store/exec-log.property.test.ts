import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { bytesAt } from '../../test/support/log-bytes.ts';
import { full } from '../../test/support/requires.ts';
import type { Channel } from '../porter/output-sink.ts';
import type { ExecLogFiles, ExecLogLimits } from './exec-log.ts';
import { openExecLog } from './exec-log.ts';
import { channels } from './exec-log-reader.ts';
import type { Offsets } from './segment.ts';

interface Write {
  readonly channel: Channel;
  readonly length: number;
  /** So many bytes of before are sent again. */
  readonly again: number;
  readonly wait: boolean;
}

type Step = { readonly do: 'write'; readonly write: Write } | { readonly do: 'reopen' };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 12,
    arbitrary: fc
      .record({
        channel: fc.constantFrom<Channel>('stdout', 'stderr'),
        length: fc.oneof(fc.integer({ min: 0, max: 9 }), fc.integer({ min: 0, max: 200 })),
        again: fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, fc.integer({ min: 0, max: 250 })),
        wait: fc.boolean(),
      })
      .map((write) => ({ do: 'write' as const, write })),
  },
  { weight: 1, arbitrary: fc.constant({ do: 'reopen' as const }) },
);

const limits: fc.Arbitrary<ExecLogLimits> = fc.record({
  segmentBytes: fc.integer({ min: 12, max: 150 }),
  segmentRuns: fc.oneof(fc.constant(1000), fc.integer({ min: 1, max: 6 })),
  segments: fc.integer({ min: 2, max: 6 }),
  recentBytes: fc.integer({ min: 0, max: 600 }),
});

/** What arrived, in order: the place of every byte of a channel. */
class Model {
  readonly places: Record<Channel, number[]> = { stdout: [], stderr: [] };
  total = 0;

  add(channel: Channel, upTo: number): void {
    while (this.places[channel].length < upTo) this.places[channel].push(this.total++);
  }

  get stored(): Offsets {
    return { stdout: this.places.stdout.length, stderr: this.places.stderr.length };
  }
}

async function play(folder: string, bounds: ExecLogLimits, steps: readonly Step[]) {
  const model = new Model();
  let log = await openExecLog(folder, { limits: bounds });
  let writes: Promise<void>[] = [];
  for (const one of steps) {
    if (one.do === 'reopen') {
      await Promise.all(writes);
      writes = [];
      await log.close();
      log = await openExecLog(folder, { limits: bounds });
      expect(log.stored).toEqual(model.stored);
      continue;
    }
    const { channel, length, again, wait } = one.write;
    const end = model.stored[channel] + length;
    const from = Math.max(0, model.stored[channel] - again);
    model.add(channel, end);
    const written = log.write(channel, from, bytesAt(channel, from, end - from));
    writes.push(written);
    if (wait) {
      await written;
      expect(log.stored[channel]).toBeGreaterThanOrEqual(end);
    }
  }
  await Promise.all(writes);
  return { log, model };
}

/** Reads it and holds every piece against the model. Returns which arrivals it got. */
async function readAll(log: ExecLogFiles, model: Model, from: Offsets): Promise<number[]> {
  const position = { ...from };
  const arrived: number[] = [];
  for await (const piece of log.read({ from })) {
    expect(piece.offset).toBe(position[piece.channel]);
    if ('droppedBytes' in piece) {
      expect(piece.droppedBytes).toBeGreaterThan(0);
      position[piece.channel] += piece.droppedBytes;
      continue;
    }
    expect(piece.data.equals(bytesAt(piece.channel, piece.offset, piece.data.length))).toBe(true);
    expect(piece.data.length).toBeGreaterThan(0);
    position[piece.channel] += piece.data.length;
    arrived.push(...model.places[piece.channel].slice(piece.offset, position[piece.channel]));
  }
  for (const channel of channels) {
    expect(position[channel]).toBe(Math.max(from[channel], model.stored[channel]));
  }
  expect(arrived).toEqual([...arrived].sort((a, b) => a - b));
  return arrived;
}

function bytesOnDisk(folder: string): number {
  try {
    const files = readdirSync(folder).filter((name) => name.endsWith('.out'));
    return files.reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);
  } catch {
    return 0;
  }
}

async function withFolder(work: (folder: string) => Promise<void>): Promise<void> {
  const root = mkdtempSync(join(tmpdir(), 'sallyport-log-'));
  try {
    await work(join(root, 'log'));
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

describe('the log of an exec, however its output is chopped', () => {
  it('gives back every byte in the order of arrival, and says what it dropped', {
    timeout: 600_000,
  }, async () => {
    await fc.assert(
      fc.asyncProperty(
        limits,
        fc.array(step, { maxLength: 40 }),
        fc.array(fc.record({ stdout: fc.nat(2000), stderr: fc.nat(2000) }), { maxLength: 3 }),
        async (bounds, steps, offsets) => {
          await withFolder(async (folder) => {
            const { log, model } = await play(folder, bounds, steps);
            for (const from of [{ stdout: 0, stderr: 0 }, ...offsets]) await readAll(log, model, from);
            const live = await readAll(log, model, { stdout: 0, stderr: 0 });
            await log.end();
            const reopened = await openExecLog(folder, { over: true, limits: bounds });
            expect(reopened.stored).toEqual(model.stored);
            const kept = await readAll(reopened, model, { stdout: 0, stderr: 0 });
            for (const from of offsets) await readAll(reopened, model, from);

            // The head and the tail are there; memory may have more than the disk.
            expect(kept.every((place) => live.includes(place))).toBe(true);
            expect(bytesOnDisk(folder)).toBe(kept.length);
            expect(kept.length).toBeLessThanOrEqual(bounds.segmentBytes * bounds.segments);
            if (bounds.segmentRuns === 1000) {
              const head = Math.min(model.total, bounds.segmentBytes);
              expect(kept.slice(0, head)).toEqual(Array.from({ length: head }, (_, place) => place));
              const tail = Math.min(model.total, bounds.segmentBytes * (bounds.segments - 2) + 1);
              expect(kept.slice(-tail)).toEqual(
                Array.from({ length: tail }, (_, place) => model.total - tail + place),
              );
            }
          });
        },
      ),
      { numRuns: full ? 1000 : 80 },
    );
  });

  it('captures head and tail within the limit, from memory and from disk alike', {
    timeout: 600_000,
  }, async () => {
    await fc.assert(
      fc.asyncProperty(
        limits,
        fc.array(step, { maxLength: 25 }),
        fc.nat(700),
        async (bounds, steps, limit) => {
          await withFolder(async (folder) => {
            // All of it in memory once, none of it the other time, and nothing dropped.
            const roomy = { ...bounds, segments: 100_000, recentBytes: 100_000 };
            const { log, model } = await play(
              folder,
              roomy,
              steps.filter((one) => one.do === 'write'),
            );
            await log.end();
            const reopened = await openExecLog(folder, { over: true, limits: roomy });
            for (const channel of [...channels, 'output'] as const) {
              const fromMemory = await log.capture(channel, limit);
              expect(await reopened.capture(channel, limit)).toEqual(fromMemory);
              const total = channel === 'output' ? model.total : model.stored[channel];
              expect(fromMemory.totalBytes).toBe(total);
              expect(fromMemory.truncated).toBe(total > limit);
              if (!fromMemory.truncated) expect(fromMemory.data.length).toBe(total);
            }
          });
        },
      ),
      { numRuns: full ? 500 : 40 },
    );
  });

  it('lets readers follow while it is written, whether they hold or not', { timeout: 600_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(limits, fc.array(step, { maxLength: 40 }), async (bounds, steps) => {
        await withFolder(async (folder) => {
          const writes = steps.filter((one) => one.do === 'write');
          const model = new Model();
          const log = await openExecLog(folder, { limits: bounds });
          const holding = collect(log, true);
          const free = collect(log, false);
          for (const { write } of writes) {
            const from = model.stored[write.channel];
            model.add(write.channel, from + write.length);
            const written = log.write(write.channel, from, bytesAt(write.channel, from, write.length));
            if (write.wait) await written;
          }
          await log.end();
          const held = await holding;
          expect(held.dropped).toBe(0);
          expect(held.stdout.equals(bytesAt('stdout', 0, model.stored.stdout))).toBe(true);
          expect(held.stderr.equals(bytesAt('stderr', 0, model.stored.stderr))).toBe(true);
          const seen = await free;
          expect(seen.stdout.length + seen.stderr.length + seen.dropped).toBe(model.total);
        });
      }),
      { numRuns: full ? 500 : 50 },
    );
  });
});

async function collect(log: ExecLogFiles, hold: boolean) {
  const parts: Record<Channel, Buffer[]> = { stdout: [], stderr: [] };
  let dropped = 0;
  for await (const piece of log.read({ follow: true, hold })) {
    if ('data' in piece) parts[piece.channel].push(piece.data);
    else dropped += piece.droppedBytes;
  }
  return { stdout: Buffer.concat(parts.stdout), stderr: Buffer.concat(parts.stderr), dropped };
}
