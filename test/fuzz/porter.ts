/**
 * porter, built with the sanitizers, against hosts that no Sallyport is: valid sessions with wrong fields, wrong order and
 * wrong bytes. It must end by itself when its host is gone, with status 0 and nothing found.
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type ExecRequest, encodeExec } from '../../src/porter/exec.ts';
import { encodeFrame, type Frame, FrameDecoder, frameType } from '../../src/porter/frame.ts';
import { greeting } from '../../src/porter/greeting.ts';
import { PayloadWriter } from '../../src/porter/payload.ts';
import type { FuzzOptions } from './host.ts';
import { Random } from './random.ts';

/** Harmless whatever a few turned bits make of them. */
const programs = [
  ['/bin/true'],
  ['/bin/cat'],
  ['/bin/sleep', '0.01'],
  ['/bin/sleep', '5'],
  ['/usr/bin/head', '-c', '300000', '/dev/zero'],
  ['true'],
  ['no-such-program'],
] as const;

const hostTypes = [
  frameType.credit,
  frameType.ping,
  frameType.ack,
  frameType.stdin,
  frameType.signal,
  frameType.kill,
  frameType.resize,
  frameType.forget,
  frameType.execs,
  frameType.resume,
] as const;

function execPayload(random: Random): Buffer {
  const [program = '/bin/true', ...rest] = random.pick(programs);
  const request: ExecRequest = {
    argv: [program, ...rest],
    env: { PATH: '/usr/bin:/bin', A: 'b' },
    cwd: random.chance(8) ? '/nowhere' : '/',
    stdin: random.chance(2),
    ...(random.chance(3) ? { pty: { rows: random.below(100), columns: random.below(100) } } : {}),
    ...(random.chance(3) ? { deadlineMs: random.below(50), graceMs: random.below(20) } : {}),
    ...(random.chance(4) ? { memoryLimitBytes: random.number() } : {}),
    ...(random.chance(4) ? { limits: { openFiles: random.number() } } : {}),
  };
  const payload = encodeExec(request);
  return random.chance(4) ? random.mutate(payload) : payload;
}

/** What the fuzzer knows of an exec from what porter said, so that most of what it asks is nearly right. */
interface Seen {
  stdout: number;
  stderr: number;
  exited: boolean;
}

class Session {
  readonly #random: Random;
  readonly #seen = new Map<number, Seen>();

  constructor(random: Random) {
    this.#random = random;
  }

  hello(): Buffer {
    const payload = greeting(this.#random.bytes(32));
    const bytes = encodeFrame({ type: frameType.hello, epoch: 1, stream: 0, payload, more: false });
    return this.#random.chance(50) ? this.#random.mutate(bytes) : bytes;
  }

  ping(): Buffer {
    return encodeFrame({ type: frameType.ping, epoch: 1, stream: 0, payload: Buffer.alloc(4), more: false });
  }

  /** Follows what porter sends; true for an answer to a ping. */
  heard({ type, stream, payload }: Frame): boolean {
    const seen = this.#seen.get(stream) ?? { stdout: 0, stderr: 0, exited: false };
    this.#seen.set(stream, seen);
    if (type === frameType.stdout) seen.stdout = Number(payload.readBigUInt64LE()) + payload.length - 8;
    if (type === frameType.stderr) seen.stderr = Number(payload.readBigUInt64LE()) + payload.length - 8;
    if (type === frameType.exit) seen.exited = true;
    return type === frameType.pong;
  }

  frame(): Buffer {
    const random = this.#random;
    const stream = random.chance(40) ? random.number() : 1 + random.below(12);
    const isExec = random.chance(4);
    const type = isExec ? frameType.exec : random.pick(hostTypes);
    const onConnection = type === frameType.ping || type === frameType.execs;
    let payload = isExec ? execPayload(random) : this.#control(type, stream);
    if (payload === undefined) return this.ping();
    if (random.chance(300)) payload = random.mutate(payload);
    const bytes = encodeFrame({
      type: random.chance(400) ? random.below(256) : type,
      epoch: random.chance(40) ? random.number() : 1,
      stream: onConnection ? 0 : stream,
      payload,
      more: isExec && random.chance(100),
    });
    return random.chance(500) ? random.mutate(bytes) : bytes;
  }

  #control(type: number, stream: number): Buffer | undefined {
    const random = this.#random;
    const seen = this.#seen.get(stream);
    const wild = random.chance(100);
    switch (type) {
      case frameType.ack:
      case frameType.resume: {
        if (seen === undefined && !wild) return undefined;
        const offset = (known: number): bigint => BigInt(wild ? random.number() : known);
        return new PayloadWriter()
          .u64(offset(seen?.stdout ?? 0))
          .u64(offset(seen?.stderr ?? 0))
          .end();
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
      case frameType.ping:
        return random.bytes(random.pick([0, 4, 64]));
      default:
        return type === frameType.credit ? new PayloadWriter().u32(random.number()).end() : Buffer.alloc(0);
    }
  }
}

async function oneCase(binary: string, random: Random): Promise<number> {
  const child = spawn(binary, ['--exit-with-host'], {
    stdio: ['pipe', 'pipe', 'pipe'],
    // Leaks are looked for elsewhere: the detector wants to trace porter, which does not let itself be traced.
    env: { ASAN_OPTIONS: 'detect_leaks=0:exitcode=99', UBSAN_OPTIONS: 'print_stacktrace=1' },
  });
  const session = new Session(random);
  const decoder = new FrameDecoder();
  let said = '';
  let answered = (): void => {};
  let over = false;
  child.stderr.on('data', (chunk: Buffer) => {
    said += chunk.toString();
  });
  child.stdin.on('error', () => {});
  child.stdout.on('data', (chunk: Buffer) => {
    for (const frame of decoder.push(chunk)) if (session.heard(frame)) answered();
  });
  const ended = once(child, 'close').then((status) => {
    over = true;
    answered();
    return status as [number | null, string | null];
  });
  let rounds = 0;
  for (let count = 1 + random.below(20); count > 0 && !over; count--, rounds++) {
    const frames = Array.from({ length: 1 + random.below(12) }, () => session.frame());
    const bytes = Buffer.concat([...(rounds === 0 ? [session.hello()] : []), ...frames, session.ping()]);
    const pong = new Promise<void>((resolve) => {
      answered = resolve;
    });
    for (const piece of random.chop(bytes)) child.stdin.write(piece);
    // A damaged length makes porter wait for more, and a damaged epoch makes it say nothing.
    const patience = setTimeout(() => answered(), 500);
    await pong;
    clearTimeout(patience);
  }
  child.stdin.end();
  const [code, signal] = await ended;
  if (code !== 0 || /Sanitizer|runtime error/.test(said)) {
    throw new Error(`porter ended with ${code ?? signal}:\n${said}`);
  }
  return rounds;
}

/** Sessions run side by side, each with a seed of its own. */
export async function fuzzPorter(
  binary: string,
  options: FuzzOptions & { readonly sideBySide: number },
): Promise<void> {
  let next = 0;
  const work = async (): Promise<void> => {
    while (next < options.cases) {
      const index = next++;
      const seed = (options.seed + index) >>> 0;
      try {
        await oneCase(binary, new Random(seed));
      } catch (error) {
        next = options.cases;
        throw new Error(`porter: --seed=${seed} --cases=1 finds it again`, { cause: error });
      }
      if (index % 100 === 99) options.progress?.(index + 1);
    }
  };
  await Promise.all(Array.from({ length: options.sideBySide }, work));
}
