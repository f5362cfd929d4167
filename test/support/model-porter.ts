/**
 * A porter in this process, written from docs/protocol.md and from nothing else: what it sends is a plan made by the test,
 * and it keeps the account that a real porter keeps. It throws when the host gives back what was not under way.
 */

import { Duplex } from 'node:stream';
import { encodeFrame, type Frame, FrameDecoder, frameType } from '../../src/porter/frame.ts';
import { PayloadReader, PayloadWriter } from '../../src/porter/payload.ts';

export interface PlannedExec {
  readonly stdout: Buffer;
  readonly stderr: Buffer;
  readonly exitCode: number;
}

interface ModelExec {
  readonly plan: PlannedExec;
  readonly sent: { stdout: number; stderr: number };
  readonly acknowledged: { stdout: number; stderr: number };
  exitSent: boolean;
  forgotten: boolean;
}

/** Numbers that decide what comes next; the test makes them, so that a failure can be shrunk and repeated. */
export type Choices = () => number;

const inputWindow = 65536;

export class ModelPorter {
  readonly stream: Duplex;
  /** The most that was ever under way, on one stream and on all. */
  mostOnStream = 0;
  mostOnConnection = 0;
  failure: Error | undefined;
  readonly #plans: readonly PlannedExec[];
  readonly #choose: Choices;
  readonly #decoder = new FrameDecoder();
  readonly #execs = new Map<number, ModelExec>();
  #epoch = 0;
  #connectionWindow = 0;
  #streamWindow = 0;
  #pushing = false;
  #outbox = Buffer.alloc(0);

  constructor(plans: readonly PlannedExec[], choose: Choices) {
    this.#plans = plans;
    this.#choose = choose;
    this.stream = new Duplex({
      read: () => {},
      write: (chunk: Buffer, _encoding, done) => {
        try {
          for (const frame of this.#decoder.push(chunk)) this.#take(frame);
        } catch (error) {
          this.failure = error instanceof Error ? error : new Error(String(error));
          this.stream.destroy();
        }
        done();
      },
    });
  }

  get forgotten(): number {
    return [...this.#execs.values()].filter((exec) => exec.forgotten).length;
  }

  #take(frame: Frame): void {
    const payload = new PayloadReader(frame.payload);
    if (frame.type !== frameType.hello && frame.epoch !== this.#epoch)
      throw new Error('a frame of another epoch');
    switch (frame.type) {
      case frameType.hello:
        this.#greet(frame.epoch, payload);
        break;
      case frameType.exec:
        this.#start(frame.stream);
        break;
      case frameType.ack:
        this.#acknowledge(frame.stream, payload.u64(), payload.u64());
        break;
      case frameType.forget: {
        const exec = this.#exec(frame.stream);
        if (!exec.exitSent) throw new Error('forgotten before its exit was told');
        exec.forgotten = true;
        break;
      }
      default:
        throw new Error(`frame ${frame.type} is not part of the model`);
    }
    this.#wake();
  }

  #greet(epoch: number, payload: PayloadReader): void {
    payload.u16();
    payload.u16();
    payload.u64();
    this.#epoch = epoch;
    this.#connectionWindow = payload.u32();
    this.#streamWindow = payload.u32();
    const welcome = new PayloadWriter().u16(1).u16(0).u64(0n).bytes('model').u32(1).u32(65536);
    this.#say(frameType.welcome, 0, welcome.u32(inputWindow).u32(0).end());
  }

  #start(stream: number): void {
    const plan = this.#plans[stream - 1];
    if (plan === undefined) throw new Error(`an exec that was not planned: ${stream}`);
    this.#execs.set(stream, {
      plan,
      sent: { stdout: 0, stderr: 0 },
      acknowledged: { stdout: 0, stderr: 0 },
      exitSent: false,
      forgotten: false,
    });
    this.#say(frameType.started, stream, new PayloadWriter().u32(100 + stream).end());
  }

  #exec(stream: number): ModelExec {
    const exec = this.#execs.get(stream);
    if (exec === undefined) throw new Error(`a frame for exec ${stream}, which does not exist`);
    return exec;
  }

  #acknowledge(stream: number, stdout: number, stderr: number): void {
    const exec = this.#exec(stream);
    for (const [channel, offset] of [
      ['stdout', stdout],
      ['stderr', stderr],
    ] as const) {
      if (offset < exec.acknowledged[channel] || offset > exec.sent[channel]) {
        throw new Error(`${channel} acknowledged to ${offset}, sent ${exec.sent[channel]}`);
      }
      exec.acknowledged[channel] = offset;
    }
  }

  #underWay(exec: ModelExec): number {
    const { sent, acknowledged } = exec;
    return sent.stdout - acknowledged.stdout + sent.stderr - acknowledged.stderr;
  }

  /** Later, so that what the host sent in one go is all taken before the next choice. */
  #wake(): void {
    if (this.#pushing) return;
    this.#pushing = true;
    setImmediate(() => {
      this.#pushing = false;
      while (this.#step());
      this.#flush();
    });
  }

  /** One frame of one exec, both by choice; false when nothing may be sent. */
  #step(): boolean {
    const execs = [...this.#execs.entries()];
    const from = this.#choose() % Math.max(1, execs.length);
    for (let index = 0; index < execs.length; index++) {
      const entry = execs[(from + index) % execs.length];
      if (entry !== undefined && this.#advance(...entry)) return true;
    }
    return false;
  }

  #advance(stream: number, exec: ModelExec): boolean {
    const first = this.#choose() % 2 === 0 ? ('stdout' as const) : ('stderr' as const);
    for (const channel of [first, first === 'stdout' ? ('stderr' as const) : ('stdout' as const)]) {
      const all = [...this.#execs.values()].reduce((sum, other) => sum + this.#underWay(other), 0);
      const credit = Math.min(this.#streamWindow - this.#underWay(exec), this.#connectionWindow - all);
      const left = exec.plan[channel].length - exec.sent[channel];
      const length = Math.min(left, credit, 1 + (this.#choose() % 32768));
      if (length <= 0) continue;
      const offset = exec.sent[channel];
      const data = exec.plan[channel].subarray(offset, offset + length);
      this.#say(frameType[channel], stream, Buffer.concat([u64(offset), data]));
      exec.sent[channel] += length;
      this.mostOnStream = Math.max(this.mostOnStream, this.#underWay(exec));
      this.mostOnConnection = Math.max(this.mostOnConnection, all + length);
      return true;
    }
    return this.#exit(stream, exec);
  }

  #exit(stream: number, exec: ModelExec): boolean {
    const { plan, sent } = exec;
    if (exec.exitSent || sent.stdout < plan.stdout.length || sent.stderr < plan.stderr.length) return false;
    exec.exitSent = true;
    const payload = new PayloadWriter()
      .u32(0)
      .u32(plan.exitCode)
      .u64(0n)
      .u64(0n)
      .u64(0n)
      .u32(0)
      .u32(0)
      .u32(0);
    this.#say(frameType.exit, stream, payload.u64(BigInt(sent.stdout)).u64(BigInt(sent.stderr)).end());
    return true;
  }

  #say(type: number, stream: number, payload: Buffer): void {
    const bytes = encodeFrame({ type, epoch: this.#epoch, stream, payload, more: false });
    this.#outbox = Buffer.concat([this.#outbox, bytes]);
    if (this.#outbox.length > 2 ** 18) this.#flush();
  }

  /** Any chopping, over the borders of frames. */
  #flush(): void {
    const bytes = this.#outbox;
    this.#outbox = Buffer.alloc(0);
    for (let offset = 0; offset < bytes.length; ) {
      const length = 1 + (this.#choose() % 70_000);
      this.stream.push(bytes.subarray(offset, offset + length));
      offset += length;
    }
  }
}

function u64(value: number): Buffer {
  const out = Buffer.alloc(8);
  out.writeBigUInt64LE(BigInt(value));
  return out;
}
