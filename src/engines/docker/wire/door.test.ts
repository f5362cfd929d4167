import { EventEmitter, once } from 'node:events';
import net from 'node:net';
import { buffer, text } from 'node:stream/consumers';
import { describe, expect, it, onTestFinished } from 'vitest';
import { rawServer } from '../../../../test/support/little-engine.ts';
import { Door } from './door.ts';

function frame(stream: 1 | 2, payload: string | Buffer): Buffer {
  const header = Buffer.alloc(8);
  header[0] = stream;
  header.writeUInt32BE(Buffer.byteLength(payload), 4);
  return Buffer.concat([header, Buffer.from(payload)]);
}

interface Doorway {
  readonly door: Door;
  /** The engine's end of the connection. */
  readonly engine: net.Socket;
  /** Ours, below the door. */
  readonly socket: net.Socket;
}

async function doorway(): Promise<Doorway> {
  const server = new EventEmitter();
  const accepted = once(server, 'accepted') as Promise<[net.Socket]>;
  const path = await rawServer((engine) => server.emit('accepted', engine));
  const socket = net.connect(path);
  const door = new Door(socket, `unix://${path}`);
  onTestFinished(() => {
    door.destroy();
  });
  const [engine] = await accepted;
  return { door, engine, socket };
}

/** Not `events.once`, which rejects when there is an error before. */
function closed(stream: Door | net.Socket): Promise<void> {
  return new Promise((resolve) => {
    if (stream.closed) resolve();
    else stream.once('close', () => resolve());
  });
}

describe('Door', () => {
  it('separates stdout, which it streams, from stderr, of which it keeps the last 16 KiB', async () => {
    const { door, engine } = await doorway();
    engine.write(frame(1, 'out'));
    for (let index = 0; index < 100; index += 1) engine.write(frame(2, 'x'.repeat(1024)));
    engine.write(frame(2, 'the end'));
    engine.end(frame(1, 'put'));
    expect(await text(door)).toBe('output');
    expect(door.stderrTail).toHaveLength(16 * 1024);
    expect(door.stderrTail.endsWith('xthe end')).toBe(true);
  });

  it('hands out all that was received before the connection ended, however late it is read', async () => {
    const { door, engine, socket } = await doorway();
    engine.end(frame(1, Buffer.alloc(300_000, 7)));
    await once(socket, 'end');
    engine.destroy();
    socket.destroy();
    await closed(socket);
    expect((await buffer(door)).length).toBe(300_000);
  });

  it('hands out all that was received before the connection failed, and then the failure', async () => {
    const { door, engine, socket } = await doorway();
    engine.write(frame(1, Buffer.alloc(300_000, 7)));
    while (door.readableLength < 300_000) await once(socket, 'data');
    socket.destroy(Object.assign(new Error('reset'), { code: 'ECONNRESET' }));
    await closed(socket);
    let bytes = 0;
    const reading = (async () => {
      for await (const chunk of door as AsyncIterable<Buffer>) bytes += chunk.length;
    })();
    await expect(reading).rejects.toMatchObject({ code: 'engine_unreachable' });
    expect(bytes).toBe(300_000);
  });

  it('reports a stream that broke off in the middle of a frame', async () => {
    const { door, engine } = await doorway();
    engine.write(frame(1, 'whole'));
    engine.end(frame(1, 'half').subarray(0, 10));
    await expect(text(door)).rejects.toMatchObject({ code: 'engine_unreachable' });
  });

  it('cuts off a peer that sends more than 4 MiB ahead of its reader', async () => {
    const { door, engine, socket } = await doorway();
    for (let sent = 0; sent < 6 * 2 ** 20; sent += 2 ** 16) engine.write(frame(1, Buffer.alloc(2 ** 16)));
    await closed(door);
    expect(door.errored).toMatchObject({ code: 'porter_protocol' });
    expect(socket.destroyed).toBe(true);
  });

  it('cuts off a peer that sends single bytes without end ahead of its reader', async () => {
    const { door, socket } = await doorway();
    // Handed in directly: one piece each, as a slow writer's would arrive.
    for (let sent = 0; sent < 70_000 && !door.destroyed; sent += 1) socket.emit('data', frame(1, 'x'));
    await closed(door);
    expect(door.errored).toMatchObject({ code: 'porter_protocol' });
  });

  it('lets a reader that keeps up have any amount', async () => {
    const { door, engine } = await doorway();
    const total = 64 * 2 ** 20;
    const read = buffer(door);
    for (let sent = 0; sent < total; sent += 2 ** 16) {
      if (!engine.write(frame(1, Buffer.alloc(2 ** 16)))) await once(engine, 'drain');
    }
    engine.end();
    expect((await read).length).toBe(total);
  });

  it('closes on bytes that are no multiplexed stream, without an unhandled error', async () => {
    const { door, engine } = await doorway();
    engine.write('HTTP/1.1 400 Bad Request\r\n');
    await closed(door);
    expect(door.errored).toMatchObject({ code: 'engine_protocol' });
  });

  it('does not half-close the connection when the writer ends: that would detach the output', async () => {
    const { door, engine, socket } = await doorway();
    door.end('input');
    expect((await once(engine, 'data'))[0].toString()).toBe('input');
    expect(socket.writableEnded).toBe(false);
    engine.write(frame(1, 'still here'));
    expect((await once(door, 'data'))[0].toString()).toBe('still here');
  });

  it('ends its writer when the container is gone, so that nobody waits for it', async () => {
    const { door, engine } = await doorway();
    door.resume();
    engine.end();
    await closed(door);
    expect(door.writable).toBe(false);
    await new Promise<void>((resolve) => door.write('late', () => resolve()));
  });
});
