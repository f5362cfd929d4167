/** What comes out of a sandbox may be anything: the host must answer with a typed error, bounded memory and nothing else. */

import { Duplex } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { PorterConnection } from '../../src/porter/connection.ts';
import { encodeFrame, frameType } from '../../src/porter/frame.ts';
import { PayloadWriter } from '../../src/porter/payload.ts';

/** A peer that does what the test says, instead of what porter would. */
function impostor(): { readonly stream: Duplex; readonly say: (bytes: Buffer) => void } {
  const stream = new Duplex({
    read: () => {},
    write: (_chunk, _encoding, done) => done(),
  });
  return { stream, say: (bytes) => void stream.push(bytes) };
}

const frame = (type: number, stream: number, payload: Buffer = Buffer.alloc(0)): Buffer =>
  encodeFrame({ type, epoch: 1, stream, payload });

const welcome = (major = 1): Buffer =>
  frame(
    frameType.welcome,
    0,
    new PayloadWriter().u16(major).u16(0).u64(0n).bytes('impostor').u32(65536).u32(65536).u32(1).end(),
  );

async function connected(): Promise<{
  readonly connection: PorterConnection;
  readonly say: (bytes: Buffer) => void;
}> {
  const { stream, say } = impostor();
  const opening = PorterConnection.open(stream, { timeoutMs: 5_000 });
  say(welcome());
  return { connection: (await opening).connection, say };
}

const request = { argv: ['x'] as const, env: {}, cwd: '/', stdin: false };

describe('a hostile porter', () => {
  it.each([
    ['garbage', Buffer.from('HTTP/1.1 200 OK\r\n\r\n nothing to see here')],
    ['a frame type that does not exist', frame(0xee, 1)],
    ['a second greeting', welcome()],
    ['output for a stream that is not open', frame(frameType.stdout, 77, Buffer.from('x'))],
    ['an exit status that is too short', frame(frameType.exit, 1, Buffer.alloc(3))],
    ['a CPU time beyond all numbers', frame(frameType.exit, 1, Buffer.alloc(36, 0xff))],
    ['a broken checksum', Buffer.concat([frame(frameType.started, 1, Buffer.alloc(4)).fill(1, 16, 20)])],
  ])('that sends %s loses the connection with a typed error', async (_name, bytes) => {
    const { connection, say } = await connected();
    const exec = connection.exec(request);
    say(bytes);
    await expect(exec.result).rejects.toMatchObject({ code: 'porter_protocol' });
    await connection.closed;
    await expect(connection.exec(request).result).rejects.toMatchObject({ code: 'porter_protocol' });
  });

  it('that sends more than it has credit for is cut off, and what it sent is not kept for ever', async () => {
    const { connection, say } = await connected();
    const exec = connection.exec(request);
    const chunk = frame(frameType.stdout, exec.stream, Buffer.alloc(65536));
    for (let sent = 0; sent < 5; sent++) say(chunk);
    await expect(exec.result).rejects.toMatchObject({ code: 'porter_protocol' });
  });

  it('that speaks another version is told apart from one that breaks the protocol', async () => {
    const { stream, say } = impostor();
    const opening = PorterConnection.open(stream, { timeoutMs: 5_000 });
    say(welcome(2));
    await expect(opening).rejects.toMatchObject({ code: 'porter_version' });
  });

  it('that says nothing at all is given up after the deadline', async () => {
    const { stream } = impostor();
    await expect(PorterConnection.open(stream, { timeoutMs: 50 })).rejects.toMatchObject({
      code: 'porter_gone',
    });
  });

  it('that goes away in the middle fails what was under way', async () => {
    const { stream, say } = impostor();
    const opening = PorterConnection.open(stream, { timeoutMs: 5_000 });
    say(welcome());
    const { connection } = await opening;
    const exec = connection.exec(request);
    stream.destroy();
    await expect(exec.result).rejects.toMatchObject({ code: 'porter_gone' });
    await expect(async () => {
      for await (const _ of exec.stdout) {
        // Nothing is to come.
      }
    }).rejects.toMatchObject({ code: 'porter_gone' });
  });
});
