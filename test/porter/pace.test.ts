/** [N22] Small pieces of output and of connections: porter collects them, whatever their writer does. */

import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { FrameDecoder, frameType } from '../../src/porter/frame.ts';
import type { Porter } from '../../src/porter/porter.ts';
import { capture, connectPorter, plainEnv, runIn, startPorter } from '../support/porter-child.ts';
import { readAll, temporaryFolder } from '../support/sockets.ts';

const bytes = 200_000;
/** The first pieces are read at once; after them one a millisecond. Twice that leaves room for how both clocks round. */
const mostFrames = (elapsedMs: number): number => 128 + 2 * elapsedMs;

const byteServer = `
import socket, sys
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[1])
server.listen()
print('listens', flush=True)
client, _ = server.accept()
for _ in range(${bytes}):
    client.send(b'x')
`;

/** A porter, and how many frames of one type it sent so far. */
async function countedPorter(type: number): Promise<{ porter: Porter; frames: () => number }> {
  const started = startPorter();
  const decoder = new FrameDecoder();
  let frames = 0;
  started.child.stdout?.on('data', (chunk: Buffer) => {
    for (const frame of decoder.push(chunk)) if (frame.type === type) frames++;
  });
  return { porter: await connectPorter(started), frames: () => frames };
}

describe('[N22] a program that writes one byte at a time', () => {
  it('has its output sent in larger pieces', async () => {
    const { porter, frames } = await countedPorter(frameType.stdout);
    const began = performance.now();
    const { stdout, exitCode } = await runIn(porter, ['dd', 'if=/dev/zero', 'bs=1', `count=${bytes}`]);
    expect([stdout.length, exitCode]).toEqual([bytes, 0]);
    expect(frames()).toBeLessThan(mostFrames(performance.now() - began));
  });

  it('has the data of its connection sent in larger pieces', async () => {
    const { porter, frames } = await countedPorter(frameType.streamOut);
    const path = join(await temporaryFolder(), 'socket');
    const server = capture(porter, { argv: ['python3', '-c', byteServer, path], env: plainEnv, cwd: '/' });
    const lines = server.stdout[Symbol.asyncIterator]();
    expect(String((await lines.next()).value)).toBe('listens\n');
    const began = performance.now();
    expect((await readAll(await porter.connect({ path }))).length).toBe(bytes);
    expect(frames()).toBeLessThan(mostFrames(performance.now() - began));
    expect((await lines.next()).done).toBe(true);
    expect((await server.exec.result).exitCode).toBe(0);
  });

  it('is answered piece by piece where it answers what it is sent', async () => {
    const { porter, frames } = await countedPorter(frameType.stdout);
    const { exec, stdout } = capture(porter, { argv: ['cat'], env: plainEnv, cwd: '/', stdin: true });
    const answers = stdout[Symbol.asyncIterator]();
    const rounds = 500;
    for (let round = 0; round < rounds; round++) {
      await exec.write(Buffer.from('x'));
      expect(String((await answers.next()).value)).toBe('x');
    }
    expect(frames()).toBe(rounds);
    exec.endStdin();
    expect((await answers.next()).done).toBe(true);
    expect((await exec.result).exitCode).toBe(0);
  });
});
