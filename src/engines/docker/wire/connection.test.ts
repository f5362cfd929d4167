/** How the client behaves towards engines that misbehave. What a healthy one does is in test/integration. */

import { getEventListeners, once } from 'node:events';
import type { Socket } from 'node:net';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { connectionTo, httpServer, rawServer } from '../../../../test/support/little-engine.ts';
import { inspectContainer } from '../containers/inspect.ts';
import { listContainers } from '../containers/list.ts';
import { buildImage } from '../images/build.ts';
import { pullImage } from '../images/pull.ts';
import { engineEvents } from '../system/events.ts';

const get = { method: 'GET', path: '/x' } as const;

/** An endless body that is produced only as it is asked for. */
function endless(): Readable {
  return new Readable({
    read() {
      setImmediate(() => this.push(Buffer.alloc(16_384)));
    },
  });
}

const silent = (): Promise<string> => rawServer(() => {});

describe('deadlines', () => {
  it.each(['json', 'stream', 'hijack'] as const)(
    'a %s call to a silent engine ends by itself',
    async (shape) => {
      const connection = connectionTo(await silent());
      await expect(connection[shape]({ ...get, timeoutMs: 100 })).rejects.toMatchObject({
        code: 'engine_timeout',
        message: expect.stringContaining('GET /x'),
      });
    },
  );

  it('an answer that begins and does not go on is cut off', async () => {
    const path = await httpServer((_request, response) => response.write('{"half":'));
    await expect(connectionTo(path).json({ ...get, timeoutMs: 100 })).rejects.toMatchObject({
      code: 'engine_timeout',
    });
  });

  it('an upload that the engine does not take ends at the deadline, and its producer with it', async () => {
    const path = await rawServer((socket) => socket.pause());
    const upload = endless();
    const call = connectionTo(path).json({ ...get, method: 'PUT', upload, timeoutMs: 200 });
    await expect(call).rejects.toMatchObject({ code: 'engine_timeout' });
    expect(upload.destroyed).toBe(true);
  });

  it('an upload whose producer is slow does not run into the deadline', async () => {
    const path = await httpServer((request, response) => {
      request.resume().on('end', () => response.end('{"ok":true}'));
    });
    const upload = new Readable({ read() {} });
    upload.push('first');
    const call = connectionTo(path).json({ ...get, method: 'PUT', upload, timeoutMs: 50 });
    // Five deadlines long.
    setTimeout(() => upload.push(null), 250);
    await expect(call).resolves.toEqual({ ok: true });
  });
});

describe('abort signals', () => {
  it.each(['json', 'stream', 'hijack'] as const)('end a %s call that waits', async (shape) => {
    const controller = new AbortController();
    const path = await rawServer(() => controller.abort());
    const call = connectionTo(path)[shape]({ ...get, signal: controller.signal });
    await expect(call).rejects.toMatchObject({ code: 'cancelled' });
    await expect(connectionTo(path)[shape]({ ...get, signal: controller.signal })).rejects.toMatchObject({
      code: 'cancelled',
    });
  });

  it('end an upload under way, and its producer', async () => {
    const controller = new AbortController();
    const path = await httpServer((request) => {
      request.once('data', () => controller.abort());
    });
    const upload = endless();
    const call = connectionTo(path).json({ ...get, method: 'PUT', upload, signal: controller.signal });
    await expect(call).rejects.toMatchObject({ code: 'cancelled' });
    expect(upload.destroyed).toBe(true);
  });

  it('end a body while it is read', async () => {
    const controller = new AbortController();
    const path = await httpServer((_request, response) => response.write('first'));
    const body = await connectionTo(path).stream({ ...get, signal: controller.signal });
    const reading = buffer(body);
    body.once('data', () => controller.abort());
    await expect(reading).rejects.toMatchObject({ code: 'cancelled' });
  });

  it('end a connection after it was upgraded', async () => {
    const controller = new AbortController();
    const peers: Socket[] = [];
    const path = await rawServer((socket) => {
      peers.push(socket);
      socket.once('data', () =>
        socket.write('HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\nhead'),
      );
    });
    const socket = await connectionTo(path).hijack({ ...get, method: 'POST', signal: controller.signal });
    expect((await once(socket, 'data'))[0].toString()).toBe('head');
    const closed = Promise.all(peers.map((peer) => once(peer, 'close')));
    controller.abort();
    await closed;
    expect(socket.destroyed).toBe(true);
  });

  it('keep no listener of a call that is over, however long they live', async () => {
    const { signal } = new AbortController();
    const path = await httpServer((request, response) => {
      request.resume();
      response.end('{}');
    });
    const connection = connectionTo(path);
    for (let call = 0; call < 20; call += 1) {
      await connection.json({ ...get, signal });
      await connection.json({ ...get, method: 'PUT', upload: Readable.from(['x']), signal });
      await connection.json({ ...get, path: '/y', signal, timeoutMs: 5_000 });
      const body = await connection.stream({ ...get, signal });
      await buffer(body);
      const left = await connection.stream({ ...get, signal });
      left.destroy();
      await once(left, 'close');
    }
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
  });
});

describe('an engine that dies half-way', () => {
  const chunkedStart = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n';
  const chunk = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`;

  const dying = (sent: string): Promise<string> =>
    rawServer((socket) => {
      socket.once('data', () => socket.end(sent));
    });

  it('in the middle of a JSON answer is a lost connection', async () => {
    const path = await dying(chunkedStart + chunk('{"Id":'));
    await expect(connectionTo(path).json(get)).rejects.toMatchObject({ code: 'engine_unreachable' });
  });

  it('before it answers is a lost connection', async () => {
    await expect(connectionTo(await dying('')).json(get)).rejects.toMatchObject({
      code: 'engine_unreachable',
    });
  });

  it('in the middle of a body fails the reader, with what came before delivered', async () => {
    const body = await connectionTo(await dying(chunkedStart + chunk('some bytes'))).stream(get);
    await expect(buffer(body)).rejects.toMatchObject({ code: 'engine_unreachable' });
  });

  it('before the body is read is no unhandled error, and is met by whoever reads later', async () => {
    const body = await connectionTo(await dying(chunkedStart + chunk('some bytes'))).stream(get);
    await new Promise<void>((resolve) => body.once('close', resolve));
    await expect(buffer(body)).rejects.toMatchObject({ code: 'engine_unreachable' });
  });

  it('in the middle of a build fails the build', async () => {
    const path = await dying(chunkedStart + chunk('{"stream":"Step 1"}\r\n'));
    const output: string[] = [];
    const build = (async () => {
      for await (const { text } of buildImage(connectionTo(path), Readable.from(['tar']), {}))
        output.push(text);
    })();
    await expect(build).rejects.toMatchObject({ code: 'engine_unreachable' });
  });

  it('in the middle of a pull or of an event stream fails those', async () => {
    const path = await dying(chunkedStart + chunk('{"status":"Pulling"}\r\n'));
    await expect(pullImage(connectionTo(path), 'x:1')).rejects.toMatchObject({ code: 'engine_unreachable' });
    const quiet = await dying(chunkedStart);
    await expect(engineEvents(connectionTo(quiet), ['a']).next()).rejects.toMatchObject({
      code: 'engine_unreachable',
    });
  });
});

describe('an engine that says no', () => {
  const saying = (status: number, message: string): Promise<string> =>
    httpServer((_request, response) => response.writeHead(status).end(JSON.stringify({ message })));

  it('with a full disk is disk_full', async () => {
    const path = await saying(500, 'write /var/lib/docker/x: no space left on device');
    await expect(connectionTo(path).json(get)).rejects.toMatchObject({
      code: 'disk_full',
      kind: 'exhausted',
    });
  });

  it('to an upload it has not read is heard, and the producer is ended', async () => {
    const upload = endless();
    // As Go's server does it: answers, closes its side, and waits a moment before it hangs up.
    const path = await rawServer((socket) => {
      socket.once('data', () => {
        socket.pause();
        socket.end('HTTP/1.1 404 Not Found\r\nConnection: close\r\n\r\n{"message":"No such container: x"}');
      });
    });
    await expect(connectionTo(path).json({ ...get, method: 'PUT', upload })).rejects.toMatchObject({
      code: 'engine_not_found',
      message: expect.stringContaining('No such container: x'),
    });
    expect(upload.destroyed).toBe(true);
  });

  it('before a pull or a build begins fails it as a pull or a build', async () => {
    const connection = connectionTo(await saying(500, 'lookup registry: no such host'));
    await expect(pullImage(connection, 'x:1')).rejects.toMatchObject({ code: 'image_pull_failed' });
    const build = buildImage(connection, Readable.from(['tar']), {}).next();
    await expect(build).rejects.toMatchObject({ code: 'image_build_failed' });
  });

  it('inside a progress stream fails the work, a full disk as such', async () => {
    const line = JSON.stringify({ error: 'failed to register layer: no space left on device' });
    const path = await httpServer((_request, response) =>
      response.end(`{"status":"Pulling"}\r\n${line}\r\n`),
    );
    await expect(pullImage(connectionTo(path), 'x:1')).rejects.toMatchObject({ code: 'disk_full' });
  });

  it('to an upgrade says why', async () => {
    const path = await saying(404, 'No such container: x');
    await expect(connectionTo(path).hijack({ ...get, method: 'POST' })).rejects.toMatchObject({
      code: 'engine_not_found',
    });
  });

  it('in a body without end is cut short', async () => {
    const path = await httpServer((_request, response) => {
      response.writeHead(500);
      endless().pipe(response);
    });
    await expect(connectionTo(path).json(get)).rejects.toMatchObject({ code: 'engine_failed' });
  });
});

describe('an engine that answers with something else', () => {
  it.each([
    ['text', 'hello'],
    ['half of a JSON value', '{"Id":'],
    ['another shape', '{"Volumes":[]}'],
    ['nothing', ''],
  ])('%s', async (_what, answer) => {
    const path = await httpServer((_request, response) => response.end(answer));
    await expect(inspectContainer(connectionTo(path), 'x')).rejects.toMatchObject({
      code: 'engine_protocol',
    });
    await expect(listContainers(connectionTo(path), ['a'])).rejects.toMatchObject({
      code: 'engine_protocol',
    });
  });

  it('a redirection is not followed', async () => {
    const path = await httpServer((_request, response) => response.writeHead(301, { Location: '/y' }).end());
    await expect(connectionTo(path).json(get)).rejects.toMatchObject({ code: 'engine_protocol' });
  });

  it('200 instead of an upgrade is refused, and the connection closed', async () => {
    const closed: Promise<unknown>[] = [];
    const path = await httpServer((request, response) => {
      closed.push(once(request.socket, 'close'));
      response.write('no upgrade');
    });
    await expect(connectionTo(path).hijack({ ...get, method: 'POST' })).rejects.toMatchObject({
      code: 'engine_protocol',
    });
    expect(closed).toHaveLength(1);
    await Promise.all(closed);
  });

  it('an answer of more than 64 MiB of JSON is refused', async () => {
    const path = await httpServer((_request, response) => endless().pipe(response));
    await expect(connectionTo(path).json(get)).rejects.toMatchObject({ code: 'engine_protocol' });
  });

  it('a progress line of more than 4 MiB is refused', async () => {
    const path = await httpServer((_request, response) => response.end('x'.repeat(5 * 2 ** 20)));
    await expect(pullImage(connectionTo(path), 'x:1')).rejects.toMatchObject({ code: 'engine_protocol' });
  });
});

describe('the producer of an upload', () => {
  const taking = (): Promise<string> =>
    httpServer((request, response) => {
      request.resume().on('end', () => response.end('{}'));
      request.on('error', () => {});
    });

  it('that fails is reported as itself, not as a failure of the engine', async () => {
    const upload = new Readable({ read() {} });
    upload.push('some');
    const call = connectionTo(await taking()).json({ ...get, method: 'PUT', upload });
    const failure = Object.assign(new Error('cannot read the file'), { code: 'EACCES' });
    setImmediate(() => upload.destroy(failure));
    await expect(call).rejects.toBe(failure);
  });

  it('that fails after the answer began fails the reader with that', async () => {
    const path = await httpServer((request, response) => {
      request.on('error', () => {});
      response.write('{"stream":"begun"}\n');
    });
    const upload = new Readable({ read() {} });
    upload.push('some');
    const build = buildImage(connectionTo(path), upload, {});
    expect((await build.next()).value).toEqual({ text: 'begun' });
    const failure = new Error('the context changed while it was read');
    upload.destroy(failure);
    await expect(build.next()).rejects.toBe(failure);
  });

  it('that is closed before its end ends the call instead of hanging it', async () => {
    const upload = new Readable({ read() {} });
    upload.push('some');
    const call = connectionTo(await taking()).json({ ...get, method: 'PUT', upload });
    setImmediate(() => upload.destroy());
    await expect(call).rejects.toMatchObject({ code: 'cancelled' });
    const closed = new Readable({ read() {} }).destroy();
    await once(closed, 'close');
    await expect(
      connectionTo(await taking()).json({ ...get, method: 'PUT', upload: closed }),
    ).rejects.toMatchObject({ code: 'cancelled' });
  });

  it('ends when the reader of the answer leaves', async () => {
    const path = await httpServer((request, response) => {
      request.on('error', () => {});
      response.write('begun');
    });
    const upload = endless();
    const body = await connectionTo(path).stream({ ...get, method: 'POST', upload });
    const closed = once(upload, 'close');
    body.destroy();
    await closed;
  });
});
