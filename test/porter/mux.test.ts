/** The host's multiplexer against a model porter: whatever the order, the chopping and the pace of the readers. */

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { connectionWindow, streamWindow } from '../../src/porter/greeting.ts';
import { OutputQueue } from '../../src/porter/output-queue.ts';
import { queueSink } from '../../src/porter/output-sink.ts';
import { Porter } from '../../src/porter/porter.ts';
import { Random } from '../fuzz/random.ts';
import { ModelPorter, type PlannedExec } from '../support/model-porter.ts';

const execs = fc.array(
  fc.record({
    stdoutBytes: fc.oneof(fc.nat(200), fc.nat(900_000)),
    stderrBytes: fc.oneof(fc.constant(0), fc.nat(200), fc.nat(400_000)),
    exitCode: fc.nat(255),
    /** A reader waits this many turns of the event loop before each chunk. */
    slowness: fc.constantFrom(0, 0, 1, 5, 40),
  }),
  { minLength: 1, maxLength: 6 },
);

function planned(
  seed: number,
  wish: { stdoutBytes: number; stderrBytes: number; exitCode: number },
): PlannedExec {
  const random = new Random(seed);
  // Different everywhere, so that a byte at a wrong place shows.
  const fill = (length: number): Buffer => {
    const out = Buffer.allocUnsafe(length);
    for (let at = 0; at + 4 <= length; at += 4) out.writeUInt32LE(random.u32(), at);
    return out.fill(7, length - (length % 4));
  };
  return { stdout: fill(wish.stdoutBytes), stderr: fill(wish.stderrBytes), exitCode: wish.exitCode };
}

async function readSlowly(source: AsyncIterable<Buffer>, slowness: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of source) {
    for (let turn = 0; turn < slowness; turn++) await new Promise((resolve) => setImmediate(resolve));
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

describe('the host half against a model of porter', () => {
  it('gives every byte once and in order to each reader, and never lets more be under way than the windows', async () => {
    await fc.assert(
      fc.asyncProperty(execs, fc.nat(0xffffffff), async (wishes, seed) => {
        const plans = wishes.map((wish, index) => planned(seed + index, wish));
        const random = new Random(seed);
        const model = new ModelPorter(plans, () => random.u32());
        const porter = await Porter.open(model.stream, {
          epoch: 1,
          token: Buffer.alloc(32),
          timeoutMs: 10_000,
        });
        const outcomes = await Promise.all(
          wishes.map(async ({ slowness }) => {
            const stdout = new OutputQueue();
            const stderr = new OutputQueue();
            const exec = porter.exec({ argv: ['x'], env: {}, cwd: '/' }, queueSink(stdout, stderr));
            const [out, err, result] = await Promise.all([
              readSlowly(stdout, slowness),
              readSlowly(stderr, slowness),
              exec.result,
            ]);
            exec.forget();
            return { out, err, result };
          }),
        );
        porter.close();
        expect(model.failure).toBeUndefined();
        expect(model.forgotten).toBe(plans.length);
        expect(model.mostOnStream).toBeLessThanOrEqual(streamWindow);
        expect(model.mostOnConnection).toBeLessThanOrEqual(connectionWindow);
        for (const [index, { out, err, result }] of outcomes.entries()) {
          const plan = plans[index];
          expect(plan !== undefined && out.equals(plan.stdout) && err.equals(plan.stderr)).toBe(true);
          expect(result.exitCode).toBe(plan?.exitCode);
        }
      }),
      { numRuns: 60 },
    );
  });

  it('goes on with the others when nobody reads one, and with that one when it is discarded', async () => {
    const random = new Random(1);
    const big = { stdoutBytes: 2_000_000, stderrBytes: 0, exitCode: 0 };
    const plans = [planned(1, big), planned(2, big)];
    const model = new ModelPorter(plans, () => random.u32());
    const porter = await Porter.open(model.stream, { epoch: 1, token: Buffer.alloc(32), timeoutMs: 10_000 });
    const unread = new OutputQueue();
    const request = { argv: ['x'], env: {}, cwd: '/' } as const;
    const first = porter.exec(request, queueSink(unread, new OutputQueue()));
    const stdout = new OutputQueue();
    const second = porter.exec(request, queueSink(stdout, new OutputQueue()));
    expect((await readSlowly(stdout, 0)).equals(plans[1]?.stdout ?? Buffer.alloc(0))).toBe(true);
    await second.result;
    unread.discard();
    expect((await first.result).stdoutBytes).toBe(2_000_000);
    porter.close();
  });
});
