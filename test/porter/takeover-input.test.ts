/** Input of an exec that another host began: what porter gives back between its list and the resuming is not lost. */

import { Duplex } from 'node:stream';
import { expect, it } from 'vitest';
import { encodeFrame, FrameDecoder, frameType } from '../../src/porter/frame.ts';
import { OutputQueue } from '../../src/porter/output-queue.ts';
import { queueSink } from '../../src/porter/output-sink.ts';
import { PayloadWriter } from '../../src/porter/payload.ts';
import { Porter } from '../../src/porter/porter.ts';

const window = 65536;
const stream = 1;

const frame = (type: number, on: number, payload: Buffer): Buffer =>
  encodeFrame({ type, epoch: 1, stream: on, payload, more: false });

/** One exec that has taken all the input it could, and has room for `room` now. */
function execList(room: number): Buffer {
  const row = new PayloadWriter().u32(1).u32(stream).u32(7).u32(1);
  for (let offset = 0; offset < 4; offset++) row.u64(0n);
  return frame(frameType.execList, 0, row.u64(BigInt(window)).u32(room).u64(5n).end());
}

const credit = (bytes: number): Buffer =>
  frame(frameType.credit, stream, new PayloadWriter().u32(bytes).end());

interface Model {
  readonly porter: Porter;
  readonly say: (...frames: readonly Buffer[]) => void;
  /** Bytes of input that arrived. */
  readonly input: () => number;
}

async function model(): Promise<Model> {
  const decoder = new FrameDecoder();
  let input = 0;
  const wire = new Duplex({
    read: () => {},
    write: (chunk: Buffer, _encoding, done) => {
      for (const { type, payload } of decoder.push(chunk))
        if (type === frameType.stdin) input += payload.length;
      done();
    },
  });
  const opening = Porter.open(wire, { epoch: 1, token: Buffer.alloc(32), timeoutMs: 5_000 });
  const welcome = new PayloadWriter().u16(1).u16(0).u64(0n).bytes('model').u32(1).u32(65536).u32(window);
  wire.push(frame(frameType.welcome, 0, welcome.u32(stream).end()));
  return {
    porter: await opening,
    say: (...frames) => void wire.push(Buffer.concat([...frames])),
    input: () => input,
  };
}

it.each([
  ['in the same piece as the list', (say: Model['say']) => say(execList(0), credit(5000), credit(3000))],
  [
    'before the resuming',
    (say: Model['say']) => {
      say(execList(0));
      say(credit(5000));
      say(credit(3000));
    },
  ],
  ['before the list, which counts it already', (say: Model['say']) => say(credit(3000), execList(8000))],
])('credit that comes %s counts once', async (_name, tell) => {
  const { porter, say, input } = await model();
  const listed = porter.list();
  tell(say);
  const [known] = await listed;
  if (known === undefined) throw new Error('no exec');
  const exec = porter.resume(
    known,
    { stdout: 0, stderr: 0 },
    queueSink(new OutputQueue(), new OutputQueue()),
  );
  exec.result.catch(() => {});
  void exec.write(Buffer.alloc(window)).catch(() => {});
  await expect.poll(input).toBeGreaterThanOrEqual(8000);
  expect(input()).toBe(8000);
  porter.close();
});
