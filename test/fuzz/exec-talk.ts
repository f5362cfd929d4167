/** Programs, as a host that is nearly right would ask for them. */

import { type ExecRequest, encodeExec } from '../../src/porter/exec.ts';
import { type Frame, frameType } from '../../src/porter/frame.ts';
import { PayloadWriter } from '../../src/porter/payload.ts';
import type { Random } from './random.ts';
import { anyOf, type Said, type StreamNumbers, type Talk } from './talk.ts';

const programs = [
  ['/bin/true'],
  ['/bin/cat'],
  ['/bin/sleep', '0.01'],
  ['/bin/sleep', '5'],
  ['/usr/bin/head', '-c', '300000', '/dev/zero'],
  ['/bin/bash', '-c', 'sleep 5 & setsid sleep 5 & echo out; echo err >&2; kill -9 $$'],
  ['true'],
  ['no-such-program'],
] as const;

const followUps = [
  frameType.ack,
  frameType.stdin,
  frameType.stdin,
  frameType.signal,
  frameType.kill,
  frameType.resize,
  frameType.forget,
  frameType.execs,
  frameType.resume,
] as const;

interface Seen {
  stdout: number;
  stderr: number;
  exited: boolean;
}

export class ExecTalk implements Talk {
  readonly #random: Random;
  readonly #numbers: StreamNumbers;
  readonly #seen = new Map<number, Seen>();

  constructor(random: Random, numbers: StreamNumbers) {
    this.#random = random;
    this.#numbers = numbers;
  }

  say(): Said | undefined {
    const random = this.#random;
    const known = anyOf(random, [...this.#seen.keys()]);
    if (known === undefined || random.chance(4)) return this.#request(known);
    const type = random.pick(followUps);
    const payload = this.#followUp(type, known);
    const stream = type === frameType.execs ? 0 : known;
    return payload === undefined ? undefined : { type, stream, payload };
  }

  /** Execs outlive their host. */
  restart(): void {}

  hear({ type, stream, payload }: Frame): void {
    const seen = this.#seen.get(stream);
    if (seen === undefined) return;
    if (type === frameType.stdout) seen.stdout = Number(payload.readBigUInt64LE()) + payload.length - 8;
    if (type === frameType.stderr) seen.stderr = Number(payload.readBigUInt64LE()) + payload.length - 8;
    if (type === frameType.exit) seen.exited = true;
  }

  #request(known: number | undefined): Said {
    const random = this.#random;
    // Now and then a number that is known: that asks for its state again.
    const stream = known !== undefined && random.chance(8) ? known : this.#numbers.next();
    if (!this.#seen.has(stream)) this.#seen.set(stream, { stdout: 0, stderr: 0, exited: false });
    const payload = encodeExec(this.#wish());
    return {
      type: frameType.exec,
      stream,
      payload: random.chance(4) ? random.mutate(payload) : payload,
      more: random.chance(100),
    };
  }

  #wish(): ExecRequest {
    const random = this.#random;
    const [program = '/bin/true', ...rest] = random.pick(programs);
    return {
      argv: [program, ...rest],
      env: { PATH: '/usr/bin:/bin', A: 'b' },
      cwd: random.chance(8) ? '/nowhere' : '/',
      stdin: random.chance(2),
      ...(random.chance(3) ? { pty: { rows: random.below(100), columns: random.below(100) } } : {}),
      ...(random.chance(3) ? { deadlineMs: random.below(50), graceMs: random.below(20) } : {}),
      ...(random.chance(4) ? { memoryLimitBytes: random.number() } : {}),
      ...(random.chance(4) ? { limits: { openFiles: random.number() } } : {}),
    };
  }

  #followUp(type: number, stream: number): Buffer | undefined {
    const random = this.#random;
    const seen = this.#seen.get(stream);
    const wild = random.chance(100);
    switch (type) {
      case frameType.ack:
      case frameType.resume: {
        const offset = (known = 0): bigint => BigInt(wild ? random.number() : known);
        return new PayloadWriter().u64(offset(seen?.stdout)).u64(offset(seen?.stderr)).end();
      }
      case frameType.forget:
        return seen?.exited === true || wild ? Buffer.alloc(0) : undefined;
      case frameType.stdin:
        return random.bytes(random.below(random.pick([1, 10, 5000])));
      case frameType.kill:
        return new PayloadWriter().u32(random.below(20)).end();
      case frameType.signal:
        return new PayloadWriter().u32(random.pick([0, 1, 2, 9, 15, 18, 19, 64, 65, 0xffffffff])).end();
      case frameType.resize:
        return new PayloadWriter().u16(random.below(65536)).u16(random.below(65536)).end();
      default:
        return Buffer.alloc(0);
    }
  }
}
