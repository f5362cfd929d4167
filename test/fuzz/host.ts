/**
 * The host half against streams that no porter would send. Whatever comes, the link ends with a typed error (or goes on),
 * hands out no byte that was not in the stream, and throws nothing past its edge.
 */

import { Duplex } from 'node:stream';
import { encodeFrame, frameType } from '../../src/porter/frame.ts';
import type { OutputSink } from '../../src/porter/output-sink.ts';
import { PayloadWriter } from '../../src/porter/payload.ts';
import { Porter } from '../../src/porter/porter.ts';
import { isSallyportError } from '../../src/protocol/errors.ts';
import { Random } from './random.ts';

const porterTypes = [
  frameType.welcome,
  frameType.refused,
  frameType.superseded,
  frameType.pong,
  frameType.notice,
  frameType.started,
  frameType.stdout,
  frameType.stderr,
  frameType.exit,
  frameType.notStarted,
  frameType.execList,
  frameType.credit,
] as const;

const frame = (type: number, stream: number, payload: Buffer, epoch = 1): Buffer =>
  encodeFrame({ type, epoch, stream, payload, more: false });

const welcome = frame(
  frameType.welcome,
  0,
  new PayloadWriter().u16(1).u16(0).u64(0n).bytes('fuzz').u32(1).u32(65536).u32(65536).u32(0).end(),
);

function exitPayload(stdoutBytes: number, stderrBytes: number): Buffer {
  const writer = new PayloadWriter().u32(0).u32(0).u64(0n).u64(0n).u64(0n).u32(0).u32(0).u32(0);
  return writer.u64(BigInt(stdoutBytes)).u64(BigInt(stderrBytes)).end();
}

function output(offset: number, data: Buffer): Buffer {
  return Buffer.concat([new PayloadWriter().u64(BigInt(offset)).end(), data]);
}

/** A session as a real porter would have it, frame by frame. */
function validSession(random: Random): Buffer[] {
  const frames = [welcome, frame(frameType.started, 1, new PayloadWriter().u32(7).end())];
  const sent = { stdout: 0, stderr: 0 };
  for (let count = random.below(6); count > 0; count--) {
    const channel = random.chance(2) ? 'stdout' : 'stderr';
    const data = random.bytes(1 + random.below(60));
    frames.push(frame(frameType[channel], 1, output(sent[channel], data)));
    sent[channel] += data.length;
  }
  if (random.chance(2)) frames.push(frame(frameType.exit, 1, exitPayload(sent.stdout, sent.stderr)));
  if (random.chance(3)) {
    frames.push(frame(frameType.notStarted, 2, new PayloadWriter().u32(2).bytes('no such file').end()));
  }
  if (random.chance(4)) frames.push(frame(frameType.execList, 0, new PayloadWriter().u32(0).end()));
  return frames;
}

/** Frames whose checksum is right and whose content is not. */
function damagedFrame(random: Random, valid: Buffer): Buffer {
  const payload = random.chance(3) ? random.bytes(random.below(80)) : random.mutate(valid.subarray(20));
  const type = random.chance(3)
    ? random.pick(porterTypes)
    : random.chance(8)
      ? random.below(256)
      : valid.readUInt8(2);
  const stream = random.chance(4) ? random.number() : valid.readUInt32LE(8);
  return frame(type, stream, payload.subarray(0, 65536), random.chance(16) ? random.number() : 1);
}

function hostileStream(random: Random): Buffer {
  const frames = validSession(random);
  switch (random.below(5)) {
    case 0:
      return random.bytes(random.below(200));
    case 1:
      return random.mutate(Buffer.concat(frames));
    case 2:
      return Buffer.concat([welcome, random.mutate(Buffer.concat(frames.slice(1)))]);
    case 3:
      return Buffer.concat([
        welcome,
        ...frames.slice(1).map((valid) => (random.chance(2) ? damagedFrame(random, valid) : valid)),
      ]);
    default: {
      const shuffled = frames.slice(1).sort(() => random.below(3) - 1);
      return Buffer.concat([welcome, ...shuffled, ...shuffled.slice(0, random.below(3))]);
    }
  }
}

class CountingSink implements OutputSink {
  bytes = 0;
  write(_channel: string, _offset: number, data: Buffer): Promise<void> {
    this.bytes += data.length;
    return Promise.resolve();
  }
  end(): void {}
}

async function oneCase(random: Random): Promise<void> {
  const bytes = hostileStream(random);
  const stream = new Duplex({ read: () => {}, write: (_chunk, _encoding, done) => done() });
  const opening = Porter.open(stream, { epoch: 1, token: Buffer.alloc(16), timeoutMs: 600_000 });
  const pieces = random.chop(bytes);
  // The greeting alone first, so that there is something open when the rest arrives.
  const head = bytes.subarray(0, welcome.length);
  if (head.equals(welcome)) {
    stream.push(head);
    const porter = await opening;
    const sink = new CountingSink();
    const results = [1, 2].map(() => porter.exec({ argv: ['x'], env: {}, cwd: '/' }, sink).result);
    const list = random.chance(2) ? porter.list() : Promise.resolve([]);
    for (const piece of random.chop(bytes.subarray(welcome.length))) stream.push(piece);
    stream.push(null);
    const settled = await Promise.allSettled([
      ...results,
      list,
      porter.closed.then((reason) => {
        throw reason;
      }),
    ]);
    for (const outcome of settled) {
      if (outcome.status === 'rejected' && !isSallyportError(outcome.reason)) throw outcome.reason;
    }
    if (sink.bytes > bytes.length) throw new Error(`${sink.bytes} bytes came out of ${bytes.length}`);
    return;
  }
  for (const piece of pieces) stream.push(piece);
  stream.push(null);
  try {
    (await opening).close();
  } catch (error) {
    if (!isSallyportError(error)) throw error;
  }
}

export interface FuzzOptions {
  readonly seed: number;
  readonly cases: number;
  readonly progress?: (done: number) => void;
}

/** Each case has a seed of its own, derived from the run's, so that a finding can be had again alone. */
export async function fuzzHost(options: FuzzOptions): Promise<void> {
  for (let index = 0; index < options.cases; index++) {
    const seed = (options.seed + index) >>> 0;
    try {
      await oneCase(new Random(seed));
    } catch (error) {
      throw new Error(`host: --seed=${seed} --cases=1 finds it again`, { cause: error });
    }
    if (index % 10_000 === 9_999) options.progress?.(index + 1);
  }
}
