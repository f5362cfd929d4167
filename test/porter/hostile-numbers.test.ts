/** A porter that lies about numbers of streams, names and windows, or that does not read what it is sent. */

import { Duplex } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { encodeFrame, type Frame, FrameDecoder, frameType } from '../../src/porter/frame.ts';
import { OutputQueue } from '../../src/porter/output-queue.ts';
import { queueSink } from '../../src/porter/output-sink.ts';
import { PayloadWriter } from '../../src/porter/payload.ts';
import { Porter } from '../../src/porter/porter.ts';
import { until } from '../support/until.ts';

interface Liar {
  readonly porter: Porter;
  /** The stream that the host writes to. */
  readonly wire: Duplex;
  readonly say: (type: number, stream: number, payload?: Buffer) => void;
  /** What the host has sent. */
  readonly heard: Frame[];
}

const fields = (): PayloadWriter => new PayloadWriter();
const firstPorterStream = 2 ** 31;

const greetingOf = ({ highestStream = 0, inputWindow = 65536 }): Buffer =>
  fields().u16(1).u16(0).u64(0n).bytes('x').u32(1).u32(65536).u32(inputWindow).u32(highestStream).end();

/** `reads`: whether what the host writes is ever taken. */
async function liar({
  reads = true,
  ...lies
}: {
  readonly reads?: boolean;
  readonly highestStream?: number;
  readonly inputWindow?: number;
} = {}): Promise<Liar> {
  const heard: Frame[] = [];
  const decoder = new FrameDecoder();
  let greeted = false;
  const wire = new Duplex({
    read: () => {},
    write: (chunk: Buffer, _encoding, done) => {
      for (const frame of decoder.push(chunk)) heard.push({ ...frame, payload: Buffer.from(frame.payload) });
      if (reads || !greeted) done();
      greeted = true;
    },
  });
  const say: Liar['say'] = (type, stream, payload = Buffer.alloc(0)) =>
    void wire.push(encodeFrame({ type, epoch: 1, stream, payload, more: false }));
  const opening = Porter.open(wire, { epoch: 1, token: Buffer.alloc(32), timeoutMs: 5000 });
  say(frameType.welcome, 0, greetingOf(lies));
  return { porter: await opening, wire, say, heard };
}

const start = (porter: Porter) =>
  porter.exec(
    { argv: ['x'], env: {}, cwd: '/', stdin: true },
    queueSink(new OutputQueue(), new OutputQueue()),
  );

/** As porter lists one that runs. */
const listed = (streams: readonly number[]): Buffer => {
  const writer = fields().u32(streams.length);
  for (const stream of streams) {
    writer.u32(stream).u32(7).u32(1);
    writer.u64(0n).u64(0n).u64(0n).u64(0n).u64(0n).u32(65536).u64(0n);
  }
  return writer.end();
};

const listeners = (streams: readonly number[]): Buffer => {
  const writer = fields().u32(streams.length);
  for (const stream of streams) writer.u32(stream).u32(1).bytes('127.0.0.1').u16(3128);
  return writer.end();
};

const protocolBroken = { code: 'porter_protocol' };

describe('[N5] a porter that lies about numbers of streams', () => {
  it('cannot greet with one that leaves the host none of its own', async () => {
    await expect(liar({ highestStream: 2 ** 31 - 1 })).rejects.toMatchObject(protocolBroken);
    await expect(liar({ highestStream: 2 ** 31 - 1000 })).rejects.toMatchObject(protocolBroken);
    const { porter } = await liar({ highestStream: 2 ** 30 });
    expect(porter.reserveStream()).toBe(2 ** 30 + 1);
    porter.close();
  });

  it('cannot have a command of before forgotten by a greeting with a lower one', async () => {
    const { porter, say } = await liar({ highestStream: 0 });
    const list = porter.list();
    say(frameType.execList, 0, listed([5]));
    const [known] = await list;
    if (known === undefined) throw new Error('nothing was listed');
    const sink = queueSink(new OutputQueue(), new OutputQueue());
    const resumed = porter.resume(known, { stdout: 0, stderr: 0 }, sink);
    const others = Array.from({ length: 8 }, () => start(porter));
    expect(new Set(others.map(({ stream }) => stream)).has(5)).toBe(false);
    porter.close();
    // Each hears of the end of the connection.
    for (const { result } of [resumed, ...others])
      await expect(result).rejects.toMatchObject({ code: 'porter_gone' });
  });

  it.each([
    ['an exec of stream 0', frameType.execList, listed([0])],
    ['an exec of a stream that is not the host’s', frameType.execList, listed([firstPorterStream])],
    ['an exec twice', frameType.execList, listed([3, 3])],
    ['a listener of stream 0', frameType.listenerList, listeners([0])],
    [
      'a listener of a stream that is not the host’s',
      frameType.listenerList,
      listeners([firstPorterStream + 5]),
    ],
    ['a listener twice', frameType.listenerList, listeners([3, 3])],
  ] as const)('that lists %s loses the connection', async (_what, type, payload) => {
    const { porter, say } = await liar();
    const list = type === frameType.execList ? porter.list() : porter.listeners();
    say(type, 0, payload);
    await expect(list).rejects.toMatchObject(protocolBroken);
    expect(await porter.closed).toMatchObject(protocolBroken);
  });

  it('that lists a listener in the place of a running command loses the connection, and the command hears of it', async () => {
    const { porter, say } = await liar();
    const exec = start(porter);
    const list = porter.listeners();
    say(frameType.listenerList, 0, listeners([exec.stream]));
    const [known] = await list;
    if (known === undefined) throw new Error('nothing was listed');
    porter.resumeListener(known, () => {});
    expect(await porter.closed).toMatchObject(protocolBroken);
    await expect(exec.result).rejects.toMatchObject(protocolBroken);
  });

  it('that refuses a host which it has welcomed breaks the protocol', async () => {
    const { porter, say } = await liar();
    say(frameType.refused, 0, fields().u16(1).u16(0).u32(5).u32(1).bytes('a newer host was here').end());
    expect(await porter.closed).toMatchObject(protocolBroken);
    const other = await liar();
    other.say(frameType.refused, 0, fields().u16(9).u16(0).u32(1).u32(1).bytes('another version').end());
    expect(await other.porter.closed).toMatchObject(protocolBroken);
  });
});

describe('[G5] a command whose reader does not read', () => {
  it('is told from one of which nothing more comes', async () => {
    const { porter, say } = await liar();
    const stdout = new OutputQueue();
    const exec = porter.exec({ argv: ['x'], env: {}, cwd: '/' }, queueSink(stdout, new OutputQueue()));
    expect(exec.isStored).toBe(true);
    say(frameType.stdout, exec.stream, Buffer.concat([fields().u64(0n).end(), Buffer.from('text')]));
    await until(() => !exec.isStored);
    stdout.discard();
    await until(() => exec.isStored);
    porter.close();
  });
});

describe('[N5] a porter that lists a folder', () => {
  const page = (names: readonly string[]): Buffer =>
    Buffer.concat(names.map((name) => fields().u32(1).bytes(name).end()));

  /** Answers each question for a page with what `pages` says, and that there are more. */
  async function listedFrom(
    pages: (asked: number) => readonly string[],
    options: { readonly most?: number } = {},
  ) {
    const { porter, say, heard } = await liar();
    const entries: string[] = [];
    let asked = 0;
    let over = false;
    const reading = (async () => {
      for await (const { name } of porter.files.list('/x', options)) entries.push(name.toString());
    })().finally(() => {
      over = true;
    });
    reading.catch(() => {});
    await until(() => {
      const questions = heard.filter(({ type }) => type === frameType.file);
      const next = questions[asked];
      if (next === undefined || over) return over;
      const names = pages(asked++);
      if (names.length > 0) say(frameType.data, next.stream, page(names));
      say(
        frameType.done,
        next.stream,
        fields()
          .u32(0)
          .bytes(
            fields()
              .u32(names.length > 0 ? 1 : 0)
              .end(),
          )
          .end(),
      );
      return false;
    });
    return { reading, entries, asked: () => asked };
  }

  it('is asked for more as long as it goes on', async () => {
    const { reading, entries } = await listedFrom((asked) => [['a', 'b'], ['c'], []][asked] ?? []);
    await reading;
    expect(entries).toEqual(['a', 'b', 'c']);
  });

  it('without an end is not asked for more than anybody could keep', async () => {
    const { reading, entries } = await listedFrom((asked) => [String(asked)], { most: 3 });
    await expect(reading).rejects.toMatchObject({ code: 'file_invalid' });
    expect(entries).toEqual(['0', '1', '2']);
  });

  it.each([
    ['the same page again', (): readonly string[] => ['a', 'b']],
    ['names before the last one', (asked: number): readonly string[] => (asked === 0 ? ['m'] : ['a'])],
    ['names in no order', (): readonly string[] => ['b', 'a']],
    ['a name twice', (): readonly string[] => ['a', 'a']],
    ['.', (): readonly string[] => ['.']],
    ['..', (): readonly string[] => ['..', 'a']],
  ])('and sends %s loses the connection', async (_what, pages) => {
    const { reading, asked } = await listedFrom(pages);
    await expect(reading).rejects.toMatchObject(protocolBroken);
    expect(asked()).toBeLessThan(3);
  });
});

describe('[N5] a porter that does not read', () => {
  /** Connections that the host does not want, each of which it answers with a reset. */
  async function connect({ porter, wire, say }: Liar, count: number): Promise<number> {
    const listening = porter.listen({ host: '127.0.0.1', port: 80 }, (tunnel) => tunnel.destroy());
    say(frameType.listening, 1, fields().u16(80).end());
    await listening;
    let over = false;
    void porter.closed.then(() => {
      over = true;
    });
    let most = 0;
    for (let next = firstPorterStream; !over && next < firstPorterStream + count; next++) {
      say(frameType.accepted, next, fields().u32(1).bytes('').u16(0).end());
      say(frameType.resetOut, next, fields().u32(0).end());
      most = Math.max(most, wire.writableLength);
      if (next % 256 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    return most;
  }

  it('and makes the host answer is cut off before the answers fill its memory', async () => {
    const lying = await liar({ reads: false });
    expect(await connect(lying, 40_000)).toBeLessThan(2 ** 20);
    expect(await lying.porter.closed).toMatchObject(protocolBroken);
    // One that reads may go on for ever.
    const reading = await liar();
    await connect(reading, 40_000);
    await until(() => reading.heard.filter(({ type }) => type === frameType.reset).length === 40_000);
    reading.porter.close();
    expect(await reading.porter.closed).toMatchObject({ code: 'porter_gone' });
  });

  it('gets no more input than the protocol’s window, whatever it says, and all streams together a little of it', async () => {
    const { porter, wire } = await liar({ reads: false, inputWindow: 2 ** 24 });
    const tunnels = Array.from({ length: 64 }, () => porter.connect({ host: '127.0.0.1', port: 1 }));
    for (const tunnel of tunnels) tunnel.catch(() => {});
    const execs = Array.from({ length: 64 }, () => start(porter));
    const writing = execs.map((exec) => exec.write(Buffer.alloc(2 ** 20)));
    for (let turn = 0; turn < 100; turn++) await new Promise((resolve) => setImmediate(resolve));
    expect(wire.writableLength).toBeGreaterThan(2 ** 20);
    expect(wire.writableLength).toBeLessThan(16 * 2 ** 20);
    porter.close();
    await Promise.all(writing);
  });

  it('until later gets all of it', async () => {
    const { porter, heard } = await liar();
    const exec = start(porter);
    await exec.write(Buffer.alloc(65536, 'x'));
    const bytes = heard.filter(({ type }) => type === frameType.stdin).map(({ payload }) => payload.length);
    expect(bytes.reduce((sum, length) => sum + length, 0)).toBe(65536);
    porter.close();
  });
});
