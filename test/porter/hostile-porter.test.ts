/** What comes out of a sandbox may be anything: the host must answer with a typed error, bounded memory and nothing else. */

import { Duplex } from 'node:stream';
import { describe, expect, it } from 'vitest';
import type { Exec } from '../../src/porter/exec.ts';
import { encodeFrame, frameType } from '../../src/porter/frame.ts';
import { OutputQueue } from '../../src/porter/output-queue.ts';
import { queueSink } from '../../src/porter/output-sink.ts';
import { PayloadWriter } from '../../src/porter/payload.ts';
import { Porter } from '../../src/porter/porter.ts';

/** A peer that does what the test says, instead of what porter would. */
function impostor(): { readonly stream: Duplex; readonly say: (bytes: Buffer) => void } {
  const stream = new Duplex({
    read: () => {},
    write: (_chunk, _encoding, done) => done(),
  });
  return { stream, say: (bytes) => void stream.push(bytes) };
}

const frame = (type: number, stream: number, payload: Buffer = Buffer.alloc(0), epoch = 1): Buffer =>
  encodeFrame({ type, epoch, stream, payload, more: false });

const welcome = (major = 1): Buffer =>
  frame(
    frameType.welcome,
    0,
    new PayloadWriter().u16(major).u16(0).u64(0n).bytes('impostor').u32(1).u32(65536).u32(65536).u32(0).end(),
  );

const output = (offset: number, bytes: number): Buffer =>
  Buffer.concat([new PayloadWriter().u64(BigInt(offset)).end(), Buffer.alloc(bytes)]);

const open = (stream: Duplex, timeoutMs = 5_000): Promise<Porter> =>
  Porter.open(stream, { epoch: 1, token: Buffer.alloc(32), timeoutMs });

interface Connected {
  readonly porter: Porter;
  readonly stream: Duplex;
  readonly say: (bytes: Buffer) => void;
  readonly stdout: OutputQueue;
  readonly start: () => Exec;
}

async function connected(): Promise<Connected> {
  const { stream, say } = impostor();
  const opening = open(stream);
  say(welcome());
  const porter = await opening;
  const stdout = new OutputQueue();
  const start = (): Exec =>
    porter.exec({ argv: ['x'], env: {}, cwd: '/' }, queueSink(stdout, new OutputQueue()));
  return { porter, stream, say, stdout, start };
}

const exit = (stdoutBytes: number, signal = 0): Buffer =>
  new PayloadWriter()
    .u32(signal)
    .u32(0)
    .u64(0n)
    .u64(0n)
    .u64(0n)
    .u32(0)
    .u32(0)
    .u32(0)
    .u64(BigInt(stdoutBytes))
    .u64(0n)
    .end();

describe('a hostile porter', () => {
  it.each([
    ['garbage', Buffer.from('HTTP/1.1 200 OK\r\n\r\n nothing to see here')],
    ['a frame type that does not exist', frame(0xee, 1)],
    ["a frame type that is the host's", frame(frameType.exec, 1)],
    ['a second greeting', welcome()],
    ['a frame of another epoch', frame(frameType.started, 1, Buffer.alloc(4), 2)],
    ['output for a stream that is not open', frame(frameType.stdout, 77, output(0, 1))],
    ['output with a hole in it', frame(frameType.stdout, 1, output(5, 1))],
    ['output without an offset', frame(frameType.stdout, 1, Buffer.alloc(3))],
    ['an exit status that is too short', frame(frameType.exit, 1, Buffer.alloc(3))],
    ['an exit status that is too long', frame(frameType.exit, 1, Buffer.alloc(100))],
    ['an exit that claims output which never came', frame(frameType.exit, 1, exit(10))],
    ['a signal that there is none of', frame(frameType.exit, 1, exit(0, 128))],
    ['a CPU time beyond all numbers', frame(frameType.exit, 1, Buffer.alloc(60, 0xff))],
    ['an answer to a ping that was not sent', frame(frameType.pong, 0, Buffer.alloc(4))],
    ['a list that nobody asked for', frame(frameType.execList, 0, Buffer.alloc(4))],
    ['a broken checksum', Buffer.concat([frame(frameType.started, 1, Buffer.alloc(4)).fill(1, 16, 20)])],
  ])('that sends %s loses the connection with a typed error', async (_name, bytes) => {
    const { porter, say, start } = await connected();
    const exec = start();
    say(bytes);
    await expect(exec.result).rejects.toMatchObject({ code: 'porter_protocol' });
    expect(await porter.closed).toMatchObject({ code: 'porter_protocol' });
    await expect(start().result).rejects.toMatchObject({ code: 'porter_protocol' });
  });

  it('that sends more than it has credit for is cut off', async () => {
    const { say, start } = await connected();
    const exec = start();
    for (let sent = 0; sent < 9; sent++)
      say(frame(frameType.stdout, exec.stream, output(sent * 32768, 32768)));
    await expect(exec.result).rejects.toMatchObject({ code: 'porter_protocol' });
  });

  it('that keeps to the window of each stream, but not to that of the connection, is cut off', async () => {
    const { porter, say, start } = await connected();
    for (const exec of [start(), start(), start()]) {
      for (let sent = 0; sent < 7; sent++)
        say(frame(frameType.stdout, exec.stream, output(sent * 32768, 32768)));
    }
    expect(await porter.closed).toMatchObject({ code: 'porter_protocol' });
  });

  it('that repeats output after a reader has taken it is cut off', async () => {
    const { say, start, stdout } = await connected();
    const exec = start();
    stdout.discard();
    say(frame(frameType.stdout, exec.stream, output(0, 100)));
    say(frame(frameType.stdout, exec.stream, output(0, 100)));
    await expect(exec.result).rejects.toMatchObject({ code: 'porter_protocol' });
  });

  it('that speaks another version is told apart from one that breaks the protocol', async () => {
    const { stream, say } = impostor();
    const opening = open(stream);
    say(welcome(2));
    await expect(opening).rejects.toMatchObject({ code: 'porter_version' });
  });

  it('that says nothing at all is given up after the deadline', async () => {
    await expect(open(impostor().stream, 50)).rejects.toMatchObject({ code: 'porter_gone' });
  });

  it('that was taken over by another host says so', async () => {
    const { say, start } = await connected();
    const exec = start();
    say(frame(frameType.superseded, 0));
    await expect(exec.result).rejects.toMatchObject({ code: 'porter_superseded' });
  });

  it('that goes away in the middle fails what was under way', async () => {
    const { stream, start, stdout } = await connected();
    const exec = start();
    stream.destroy();
    await expect(exec.result).rejects.toMatchObject({ code: 'porter_gone' });
    await expect(async () => {
      for await (const _ of stdout) {
        // Nothing is to come.
      }
    }).rejects.toMatchObject({ code: 'porter_gone' });
  });
});

describe('[N22] a peer that sends more frames than the loop has time for', () => {
  const notice = frame(frameType.notice, 0, new PayloadWriter().u32(1).u32(2).bytes('note').end());
  const busy = (ms: number): void => {
    const until = performance.now() + ms;
    while (performance.now() < until);
  };

  it('leaves turns to everybody else, and every frame arrives in order', async () => {
    const { porter, say } = await connected();
    const seen: number[] = [];
    let turns = 0;
    porter.onNotice(() => {
      busy(0.5);
      seen.push(turns);
    });
    const count = (): void => {
      turns++;
      next = setImmediate(count);
    };
    let next = setImmediate(count);
    say(Buffer.concat(Array.from({ length: 100 }, () => notice)));
    while (seen.length < 100) await new Promise((resolve) => setImmediate(resolve));
    clearImmediate(next);
    expect(new Set(seen).size).toBeGreaterThan(5);
    expect([...seen].sort((a, b) => a - b)).toEqual(seen);
    porter.close();
  });

  it('has what came before the end of its stream taken, also when the loop had no time for it yet', async () => {
    const { porter, stream, say } = await connected();
    let seen = 0;
    porter.onNotice(() => {
      busy(0.5);
      seen++;
    });
    say(Buffer.concat(Array.from({ length: 100 }, () => notice)));
    await new Promise((resolve) => setImmediate(resolve));
    expect(seen).toBeGreaterThan(0);
    expect(seen).toBeLessThan(100);
    stream.destroy();
    expect(await porter.closed).toMatchObject({ code: 'porter_gone' });
    expect(seen).toBe(100);
  });
});
