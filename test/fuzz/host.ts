/**
 * The host half against streams that no porter would send. Whatever comes, the link ends with a typed error (or goes on),
 * hands out no byte that was not in the stream, and throws nothing past its edge.
 */

import { Duplex } from 'node:stream';
import { encodeFrame, FrameDecoder, frameType } from '../../src/porter/frame.ts';
import { PayloadWriter } from '../../src/porter/payload.ts';
import { Porter } from '../../src/porter/porter.ts';
import { isSallyportError } from '../../src/protocol/errors.ts';
import { type Account, type Conversation, conversations } from './host-conversations.ts';
import { Random } from './random.ts';

const porterTypes = Object.values(frameType).filter((type) => type >= 0x80 || type === frameType.credit);
/** An operation waits for its turn before it is sent, which takes a few turns of the queue of promises. */
const mostTurns = 20;

const frame = (type: number, stream: number, payload: Buffer, epoch = 1): Buffer =>
  encodeFrame({ type, epoch, stream, payload, more: false });

const welcome = frame(
  frameType.welcome,
  0,
  new PayloadWriter().u16(1).u16(0).u64(5n).bytes('fuzz').u32(1).u32(65536).u32(65536).u32(0).end(),
);

/** Frames whose checksum is right and whose content is not. */
function damagedFrame(random: Random, valid: Buffer): Buffer {
  const payload = random.chance(3) ? random.bytes(random.below(80)) : random.mutate(valid.subarray(20));
  const anyType = porterTypes[random.below(porterTypes.length)] ?? frameType.credit;
  const type = random.chance(3) ? anyType : random.chance(8) ? random.below(256) : valid.readUInt8(2);
  const stream = random.chance(4) ? random.number() : valid.readUInt32LE(8);
  return frame(type, stream, payload.subarray(0, 65536), random.chance(16) ? random.number() : 1);
}

/** The answers of several conversations as they may arrive: each in its order, and all mixed. */
function mixed(random: Random, all: Buffer[][]): Buffer[] {
  const out: Buffer[] = [];
  for (let waiting = all; waiting.length > 0; waiting = waiting.filter(({ length }) => length > 0)) {
    const next = waiting[random.below(waiting.length)]?.shift();
    if (next !== undefined) out.push(next);
  }
  return out;
}

function hostile(random: Random, frames: Buffer[]): Buffer {
  switch (random.below(6)) {
    case 0:
      return random.bytes(random.below(200));
    case 1:
      return random.mutate(Buffer.concat(frames));
    case 2:
    case 3: {
      // One or two, so that most of the conversation is still in order.
      const oneIn = Math.max(2, frames.length);
      return Buffer.concat(
        frames.map((valid) => (random.chance(oneIn) ? damagedFrame(random, valid) : valid)),
      );
    }
    case 4: {
      const shuffled = [...frames].sort(() => random.below(3) - 1);
      return Buffer.concat([...shuffled, ...shuffled.slice(0, random.below(3))]);
    }
    default:
      return Buffer.concat(frames);
  }
}

class Wire {
  readonly stream: Duplex;
  readonly #decoder = new FrameDecoder();
  lastStream = 0;
  frames = 0;

  constructor() {
    this.stream = new Duplex({
      read: () => {},
      write: (chunk: Buffer, _encoding, done) => {
        for (const { stream } of this.#decoder.push(chunk)) {
          this.frames++;
          this.lastStream = stream;
        }
        done();
      },
    });
  }

  push(random: Random, bytes: Buffer): void {
    for (const piece of random.chop(bytes)) this.stream.push(piece);
  }
}

async function begin(
  wire: Wire,
  porter: Porter,
  random: Random,
  account: Account,
  conversation: Conversation,
): Promise<{ readonly outcome: Promise<unknown>; readonly answers: Buffer[] }> {
  const before = wire.frames;
  const outcome = conversation.ask(porter, random, account);
  outcome.catch(() => {});
  for (let turn = 0; wire.frames === before && turn < mostTurns; turn++) await Promise.resolve();
  const opened = wire.lastStream;
  const answers = conversation.answers(random, opened);
  return {
    outcome,
    answers: answers.map(({ type, stream = opened, payload }) => frame(type, stream, payload)),
  };
}

async function afterGreeting(wire: Wire, porter: Porter, random: Random): Promise<void> {
  const account: Account = { bytes: 0 };
  const begun: Array<Awaited<ReturnType<typeof begin>>> = [];
  for (let count = 1 + random.below(4); count > 0; count--) {
    begun.push(await begin(wire, porter, random, account, random.pick(conversations)));
  }
  const bytes = hostile(
    random,
    mixed(
      random,
      begun.map(({ answers }) => answers),
    ),
  );
  wire.push(random, bytes);
  wire.stream.push(null);
  const closed = porter.closed.then((reason) => {
    throw reason;
  });
  for (const outcome of await Promise.allSettled([...begun.map((one) => one.outcome), closed])) {
    if (outcome.status === 'rejected' && !isSallyportError(outcome.reason)) throw outcome.reason;
  }
  if (account.bytes > bytes.length) throw new Error(`${account.bytes} bytes came out of ${bytes.length}`);
}

async function oneCase(random: Random): Promise<void> {
  const wire = new Wire();
  const opening = Porter.open(wire.stream, { epoch: 1, token: Buffer.alloc(16), timeoutMs: 600_000 });
  if (!random.chance(20)) {
    wire.stream.push(welcome);
    await afterGreeting(wire, await opening, random);
    return;
  }
  wire.push(random, random.chance(3) ? random.bytes(random.below(200)) : random.mutate(welcome));
  wire.stream.push(null);
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
  const escaped: unknown[] = [];
  const onEscaped = (error: unknown): void => void escaped.push(error);
  process.on('unhandledRejection', onEscaped);
  try {
    for (let index = 0; index < options.cases; index++) {
      const seed = (options.seed + index) >>> 0;
      try {
        await oneCase(new Random(seed));
        // What escaped is told only when all promises have had their turn.
        await new Promise((resolve) => setImmediate(resolve));
        if (escaped.length > 0) throw escaped[0];
      } catch (error) {
        throw new Error(`host: --host --seed=${seed} --cases=1 finds it again`, { cause: error });
      }
      if (index % 10_000 === 9_999) options.progress?.(index + 1);
    }
  } finally {
    process.off('unhandledRejection', onEscaped);
  }
}
