/** An impostor in porter's place lies about tunnels: a typed error, bounded memory, and nothing else comes of it. */

import { Duplex } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { encodeFrame, frameType } from '../../src/porter/frame.ts';
import { streamWindow } from '../../src/porter/greeting.ts';
import { PayloadWriter } from '../../src/porter/payload.ts';
import { Porter } from '../../src/porter/porter.ts';
import type { Tunnel } from '../../src/porter/tunnel.ts';

const frame = (type: number, stream: number, payload: Buffer = Buffer.alloc(0)): Buffer =>
  encodeFrame({ type, epoch: 1, stream, payload, more: false });

const first = 2 ** 31;
const accepted = (stream: number, listener = 1, peer = '127.0.0.1'): Buffer =>
  frame(frameType.accepted, stream, new PayloadWriter().u32(listener).bytes(peer).u16(4000).end());
const question = (stream: number, bytes = 12, transport = 1, listener = 2): Buffer =>
  frame(
    frameType.question,
    stream,
    new PayloadWriter().u32(listener).u32(transport).bytes(Buffer.alloc(bytes)).end(),
  );
const u32 = (value: number): Buffer => new PayloadWriter().u32(value).end();
const data = (stream: number, bytes: number): Buffer =>
  frame(frameType.streamOut, stream, Buffer.alloc(bytes));

interface Impostor {
  readonly porter: Porter;
  readonly tunnels: Tunnel[];
  readonly say: (...frames: readonly Buffer[]) => void;
}

/** Greets, and lets the host listen: stream 1 for connections, stream 2 for DNS. */
async function impostor(): Promise<Impostor> {
  const stream = new Duplex({ read: () => {}, write: (_chunk, _encoding, done) => done() });
  const say = (...frames: readonly Buffer[]): void => void stream.push(Buffer.concat([...frames]));
  const opening = Porter.open(stream, { epoch: 1, token: Buffer.alloc(32), timeoutMs: 5_000 });
  const greeting = new PayloadWriter().u16(1).u16(0).u64(0n).bytes('impostor').u32(1).u32(65536).u32(65536);
  say(frame(frameType.welcome, 0, greeting.u32(0).end()));
  const porter = await opening;
  const tunnels: Tunnel[] = [];
  const tcp = porter.listen({ host: '127.0.0.1', port: 80 }, (tunnel) => tunnels.push(tunnel));
  const dns = porter.listenDns({ host: '127.0.0.1', port: 53 }, () => new Promise(() => {}));
  const port = new PayloadWriter().u16(80).end();
  say(frame(frameType.listening, 1, port), frame(frameType.listening, 2, port));
  await Promise.all([tcp, dns]);
  return { porter, tunnels, say };
}

const many = (count: number, make: (stream: number) => Buffer): Buffer =>
  Buffer.concat(Array.from({ length: count }, (_, index) => make(first + index)));

describe('a hostile porter', () => {
  it.each([
    ['accepts for a listener that is not there', accepted(first, 7)],
    ['accepts on a number of the host', accepted(9)],
    ['uses a number twice', Buffer.concat([accepted(first), accepted(first)])],
    [
      'uses the number of a stream that is over',
      Buffer.concat([accepted(first), frame(frameType.resetOut, first, u32(104)), accepted(first)]),
    ],
    ['goes back in its numbers', Buffer.concat([accepted(first + 5), accepted(first + 4)])],
    ['accepts with an endless peer address', accepted(first, 1, 'x'.repeat(65))],
    ['accepts more connections than may be', many(1025, (stream) => accepted(stream))],
    ['sends data on a stream that is not open', data(first, 1)],
    ['sends more than the window', Buffer.concat([accepted(first), ...Array(9).fill(data(first, 32768))])],
    [
      'sends more than the window of the connection',
      Buffer.concat([
        many(4, (stream) => accepted(stream)),
        ...[0, 1, 2, 3].flatMap((index) => Array(5).fill(data(first + index, 32768))),
      ]),
    ],
    ['sends data after the end', Buffer.concat([accepted(first), data(first, 0), data(first, 1)])],
    [
      'gives credit that was not used',
      Buffer.concat([accepted(first), frame(frameType.credit, first, u32(1))]),
    ],
    ['connects what was never asked for', frame(frameType.connected, 5)],
    ['connects what it accepted', Buffer.concat([accepted(first), frame(frameType.connected, first)])],
    [
      'fails what it accepted',
      Buffer.concat([accepted(first), frame(frameType.failed, first, Buffer.alloc(8))]),
    ],
    ['ends a listener that nobody closed', frame(frameType.unlistened, 1)],
    ['tells listeners that nobody asked for', frame(frameType.listenerList, 0, u32(0))],
    ['asks more questions than may wait', many(257, (stream) => question(stream))],
    ['asks a question that is too long', question(first, 4097)],
    ['asks by a transport that does not exist', question(first, 12, 3)],
    ['asks at a listener that is not there', question(first, 12, 1, 9)],
    ['asks with a number that was used', Buffer.concat([accepted(first), question(first)])],
  ])('that %s loses the connection with a typed error', async (_name, bytes) => {
    const { porter, say } = await impostor();
    say(bytes);
    expect(await porter.closed).toMatchObject({ code: 'porter_protocol' });
  });

  it('that fills the window by connections and goes beyond it by a file loses the connection', async () => {
    const { porter, say } = await impostor();
    const reader = porter.files.read('/x')[Symbol.asyncIterator]();
    const next = reader.next();
    await new Promise((resolve) => setImmediate(resolve));
    say(
      many(2, (stream) => accepted(stream)),
      ...[0, 1].flatMap((index) => Array<Buffer>(8).fill(data(first + index, 32768))),
    );
    await new Promise((resolve) => setImmediate(resolve));
    expect(await Promise.race([porter.closed, Promise.resolve('open')])).toBe('open');
    say(frame(frameType.data, 3, Buffer.alloc(1)));
    await expect(next).rejects.toMatchObject({ code: 'porter_protocol' });
  });

  it('that resets connections may send as much again on others', async () => {
    const { porter, say } = await impostor();
    for (let round = 0; round < 3; round++) {
      const stream = first + round;
      say(accepted(stream), ...Array<Buffer>(8).fill(data(stream, 32768)));
      say(frame(frameType.resetOut, stream, u32(104)));
    }
    await new Promise((resolve) => setImmediate(resolve));
    expect(await Promise.race([porter.closed, Promise.resolve('open')])).toBe('open');
    porter.close();
  });

  it('that resets what is only being connected loses the connection', async () => {
    const { porter, say } = await impostor();
    const connecting = porter.connect({ host: '127.0.0.1', port: 1 });
    say(frame(frameType.resetOut, 3, u32(0)));
    await expect(connecting).rejects.toMatchObject({ code: 'porter_protocol' });
  });

  it('that lists more listeners than may be loses the connection', async () => {
    const { porter, say } = await impostor();
    const asked = porter.listeners();
    say(frame(frameType.listenerList, 0, u32(65)));
    await expect(asked).rejects.toMatchObject({ code: 'porter_protocol' });
  });

  it('may fill a window with single bytes, and no more is held than that', async () => {
    const { porter, tunnels, say } = await impostor();
    say(accepted(first));
    const before = process.memoryUsage();
    // Each in a chunk of its own, as large as a pipe gives: kept as they came, they would hold 4 GB.
    const one = data(first, 1);
    for (let sent = 0; sent < streamWindow / 4; sent++) {
      const chunk = Buffer.alloc(65536);
      one.copy(chunk);
      say(chunk.subarray(0, one.length));
    }
    await new Promise((resolve) => setImmediate(resolve));
    const after = process.memoryUsage();
    expect(after.arrayBuffers - before.arrayBuffers).toBeLessThan(200 * 2 ** 20);
    expect(tunnels[0]?.destroyed).toBe(false);
    porter.close();
  });

  it('whose reset finds no listener for errors ends nothing but the tunnel', async () => {
    const { porter, tunnels, say } = await impostor();
    say(accepted(first), frame(frameType.resetOut, first, u32(104)), accepted(first + 1));
    await expect.poll(() => tunnels.map(({ destroyed }) => destroyed)).toEqual([true, false]);
    porter.close();
  });
});
