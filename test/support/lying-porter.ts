/** The other end of a connection, which greets well and then says what a test wants it to say. */

import { Duplex } from 'node:stream';
import { encodeFrame, frameType } from '../../src/porter/frame.ts';
import { PayloadWriter } from '../../src/porter/payload.ts';
import { Porter } from '../../src/porter/porter.ts';

export const frame = (type: number, payload: Buffer = Buffer.alloc(0), stream = 1): Buffer =>
  encodeFrame({ type, epoch: 1, stream, payload, more: false });

export async function lyingPorter(): Promise<{
  readonly porter: Porter;
  readonly say: (bytes: Buffer) => void;
}> {
  const stream = new Duplex({ read: () => {}, write: (_chunk, _encoding, done) => done() });
  const opening = Porter.open(stream, { epoch: 1, token: Buffer.alloc(32), timeoutMs: 5000 });
  const welcome = new PayloadWriter()
    .u16(1)
    .u16(0)
    .u64(0n)
    .bytes('x')
    .u32(1)
    .u32(65536)
    .u32(65536)
    .u32(0)
    .end();
  stream.push(frame(frameType.welcome, welcome, 0));
  return { porter: await opening, say: (bytes) => void stream.push(bytes) };
}
