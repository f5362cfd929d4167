import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { WebSocket } from 'ws';
import { type LittleDaemon, littleDaemon } from '../../test/support/little-daemon.ts';
import type { LittleExec } from '../../test/support/little-sandboxes.ts';
import { until } from '../../test/support/until.ts';
import { deferred } from '../lib/deferred.ts';

async function withExec(daemon: LittleDaemon): Promise<{ readonly exec: LittleExec; readonly path: string }> {
  await daemon.ask('POST', '/v1/sandboxes', { body: '{"spec":{"name":"box"}}' });
  await daemon.ask('POST', '/v1/sandboxes/box/execs', { body: '{"argv":["x"],"stdin":true}' });
  const exec = daemon.sandboxes.get('box').all[0];
  if (exec === undefined) throw new Error('no exec');
  return { exec, path: `/v1/sandboxes/box/execs/${exec.id}` };
}

/** Everything that comes, until the connection ends. */
function record(socket: WebSocket) {
  const frames: { readonly channel: number; readonly data: Buffer }[] = [];
  const messages: Record<string, unknown>[] = [];
  const waiting: (() => void)[] = [];
  socket.on('message', (raw, isBinary) => {
    const data = raw as Buffer;
    if (isBinary) frames.push({ channel: data[0] ?? 0, data: data.subarray(1) });
    else messages.push(JSON.parse(data.toString()) as Record<string, unknown>);
    for (const check of waiting.splice(0)) check();
  });
  const until = async (isSo: () => boolean): Promise<void> => {
    while (!isSo()) {
      const next = deferred<void>();
      waiting.push(next.resolve);
      await next.promise;
    }
  };
  const text = (channel: number): string =>
    Buffer.concat(frames.filter((frame) => frame.channel === channel).map(({ data }) => data)).toString();
  return { frames, messages, until, text };
}

async function events(daemon: LittleDaemon, path: string, headers = {}): Promise<IncomingMessage> {
  const outgoing = request({ socketPath: daemon.socketPath, path, headers }).end();
  const [answer] = await once(outgoing, 'response');
  return answer as IncomingMessage;
}

async function firstIds(answer: IncomingMessage, count: number): Promise<number[]> {
  let text = '';
  const ids = (): number[] => [...text.matchAll(/^id: (\d+)$/gm)].map(([, id]) => Number(id));
  for await (const chunk of answer) {
    text += String(chunk);
    if (ids().length >= count) break;
  }
  return ids();
}

const note = (index: number) =>
  ({ type: 'sandbox.note', sandbox_id: `sb-aaaaaaaaa${index % 2}`, code: 'x', message: `${index}` }) as const;

/** Bytes of memory in use: garbage that waits for its collection does not count, nor what a turn of the loop gives back. */
async function heldBytes(): Promise<number> {
  setFlagsFromString('--expose-gc');
  const rounds: number[] = [];
  for (let round = 0; round < 4; round++) {
    runInNewContext('gc')();
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    rounds.push(heapUsed + arrayBuffers);
    await setImmediate();
  }
  return Math.min(...rounds);
}

describe('events', () => {
  it('[A15] go on after the number that a client has, by query or by header, and only of one sandbox if asked', async () => {
    const daemon = await littleDaemon();
    for (let index = 0; index < 10; index++) daemon.sandboxes.events.append(note(index));
    expect(await firstIds(await events(daemon, '/v1/events?since=7'), 3)).toEqual([8, 9, 10]);
    const resumed = await events(daemon, '/v1/events?since=0', { 'last-event-id': '8' });
    expect(await firstIds(resumed, 2)).toEqual([9, 10]);
    const one = await events(daemon, '/v1/events?since=0&sandbox=sb-aaaaaaaaa1');
    expect(await firstIds(one, 5)).toEqual([2, 4, 6, 8, 10]);
    const live = await events(daemon, '/v1/events');
    daemon.sandboxes.events.append(note(10));
    expect(await firstIds(live, 1)).toEqual([11]);
  });

  it('refuses a number that was never given out', async () => {
    const { ask } = await littleDaemon();
    expect((await ask('GET', '/v1/events?since=99')).status).toBeGreaterThanOrEqual(400);
    expect((await ask('GET', '/v1/events', { headers: { 'last-event-id': 'x' } })).status).toBe(400);
  });

  it('of a reader that does not read cost no memory', async () => {
    const daemon = await littleDaemon();
    const answer = await events(daemon, '/v1/events?since=0');
    onTestFinished(() => void answer.destroy());
    answer.pause();
    const big = 'x'.repeat(50_000);
    const before = await heldBytes();
    for (let index = 0; index < 1000; index++) {
      daemon.sandboxes.events.append({ ...note(index), message: big });
      if (index % 50 === 0) await daemon.ask('GET', '/v1/health');
    }
    expect((await heldBytes()) - before).toBeLessThan(15_000_000);
  });
});

describe('a conversation with a command', () => {
  it('gives its output from the offsets that the client has, then how it ended', async () => {
    const daemon = await littleDaemon();
    const { exec, path } = await withExec(daemon);
    await exec.print('stdout', Buffer.from('hello '));
    await exec.print('stderr', Buffer.from('oops'));
    const socket = daemon.socket(`${path}/stream?stdout=2&stderr=4`);
    const seen = record(socket);
    await seen.until(() => seen.text(1) === 'llo ');
    expect(seen.messages[0]).toEqual({ type: 'hello', stdout: 2, stderr: 4, stdin_taken: 0 });
    await exec.print('stdout', Buffer.from('world'));
    await exec.exit(3);
    const [code] = await once(socket, 'close');
    expect(code).toBe(1000);
    expect(seen.text(1)).toBe('llo world');
    expect(seen.text(2)).toBe('');
    expect(seen.messages.at(-1)).toMatchObject({ type: 'exit', exec: { exit_code: 3 } });
  });

  it('passes input on in its order, says how much was taken, and obeys signals while input waits', async () => {
    const daemon = await littleDaemon();
    const { exec, path } = await withExec(daemon);
    const eats = deferred<void>();
    exec.appetite = eats.promise;
    const socket = daemon.socket(`${path}/stream`);
    const seen = record(socket);
    await seen.until(() => seen.messages.length === 1);
    socket.send(Buffer.from('abc'));
    socket.send(Buffer.from('def'));
    socket.send('{"type":"end_stdin"}');
    socket.send('{"type":"signal","signal":"SIGINT"}');
    socket.send('{"type":"resize","rows":10,"columns":20}');
    while (exec.done.length < 2) await daemon.ask('GET', '/v1/health');
    expect(exec.done).toEqual(['SIGINT', '10x20']);
    eats.resolve();
    await seen.until(() => seen.messages.some(({ bytes }) => bytes === 6));
    while (exec.done.length < 3) await daemon.ask('GET', '/v1/health');
    expect(Buffer.concat(exec.taken).toString()).toBe('abcdef');
    expect(exec.done).toEqual(['SIGINT', '10x20', 'end']);
    socket.close();
  });

  it.each([
    ['no message', '{"type":"dance"}'],
    ['no JSON', '{'],
    ['no signal', '{"type":"signal","signal":"SIGNONE"}'],
  ])('ends at once with a client that sends %s, and the daemon goes on', async (_, words) => {
    const daemon = await littleDaemon();
    const { path, exec } = await withExec(daemon);
    const socket = daemon.socket(`${path}/stream`);
    await once(socket, 'open');
    socket.send(words);
    const [code] = await once(socket, 'close');
    expect(code).toBe(1008);
    expect((await daemon.ask('GET', '/v1/health')).status).toBe(200);
    while (exec.holders > 0) await daemon.ask('GET', '/v1/health');
  });

  it('refuses before the handshake what it cannot serve', async () => {
    const daemon = await littleDaemon();
    const { path } = await withExec(daemon);
    const refused = async (where: string, headers = {}): Promise<number> => {
      const socket = daemon.socket(where, headers);
      const [, answer] = await once(socket, 'unexpected-response');
      answer.destroy();
      socket.on('error', () => {});
      return answer.statusCode as number;
    };
    expect(await refused('/v1/sandboxes/box/execs/ex-none/stream')).toBe(404);
    expect(await refused('/v1/sandboxes/none/execs/x/stream')).toBe(404);
    expect(await refused(`${path}/stream?stdout=-1`)).toBe(400);
    expect(await refused(`${path}/other`)).toBe(404);
    expect(await refused(`${path}/stream`, { 'sallyport-client': '9.0.0' })).toBe(409);
    expect(daemon.sandboxes.get('box').holders).toBe(0);
  });

  it('holds the command while a client is there, and no longer', async () => {
    const daemon = await littleDaemon();
    const { exec, path } = await withExec(daemon);
    const socket = daemon.socket(`${path}/stream`);
    const seen = record(socket);
    await seen.until(() => seen.messages.length === 1);
    expect(exec.holders).toBe(1);
    socket.terminate();
    while (exec.holders > 0) await daemon.ask('GET', '/v1/health');
    expect(daemon.sandboxes.get('box').holders).toBe(0);
  });

  it('reads no further in the log than a client that does not read can take', async () => {
    const daemon = await littleDaemon();
    const { exec, path } = await withExec(daemon);
    const chunk = Buffer.alloc(60_000, 'x');
    for (let index = 0; index < 500; index++) await exec.print('stdout', chunk);
    const socket = daemon.socket(`${path}/stream`);
    await once(socket, 'open');
    socket.pause();
    const before = process.memoryUsage().arrayBuffers;
    for (let index = 0; index < 50; index++) await daemon.ask('GET', '/v1/health');
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(10_000_000);
    const seen = record(socket);
    socket.resume();
    await exec.exit(0);
    await once(socket, 'close');
    expect(seen.text(1).length).toBe(30_000_000);
  });
});

describe('the log of a command', () => {
  it('is given whole, by channel, by its tail, and as it comes', async () => {
    const daemon = await littleDaemon();
    const { exec, path } = await withExec(daemon);
    await exec.print('stdout', Buffer.from('one '));
    await exec.print('stderr', Buffer.from('two '));
    await exec.print('stdout', Buffer.from('three'));
    const read = async (query: string): Promise<string> =>
      (await daemon.ask('GET', `${path}/logs?${query}`)).body.toString();
    expect(await read('')).toBe('one two three');
    expect(await read('stream=stdout')).toBe('one three');
    expect(await read('stream=stderr')).toBe('two ');
    expect(await read('tail=7')).toBe('o three');
    expect(await read('stream=stdout&tail=6')).toBe(' three');
    const { socketPath } = daemon;
    const asked = request({ socketPath, path: `${path}/logs?follow=true&tail=5` }).end();
    const [following] = (await once(asked, 'response')) as [IncomingMessage];
    const pieces = following[Symbol.asyncIterator]();
    expect(String((await pieces.next()).value)).toBe('three');
    await exec.print('stdout', Buffer.from(' four'));
    await exec.exit(0);
    expect(String((await pieces.next()).value)).toBe(' four');
    expect((await pieces.next()).done).toBe(true);
  });
});

it('[N5] a WebSocket that never comes to be holds no sandbox', async () => {
  const daemon = await littleDaemon();
  const { exec, path } = await withExec(daemon);
  const box = daemon.sandboxes.get('box');
  const socket = daemon.socket(`${path}/stream`);
  await once(socket, 'open');
  expect(box.holders).toBe(1);
  socket.close();
  await once(socket, 'close');
  // A handshake that `ws` refuses after the sandbox was looked up.
  const head = { connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' };
  const asked = request({ socketPath: daemon.socketPath, path: `${path}/stream`, headers: head }).end();
  const [answer] = (await once(asked, 'response')) as [IncomingMessage];
  expect(answer.statusCode).toBe(400);
  answer.resume();
  await once(answer, 'end');
  await until(() => box.holders === 0);
  await exec.exit(0);
});
