/** A door behind which somebody greets as porter does, and then answers as a test wants it to, or not at all. */

import { Duplex } from 'node:stream';
import { encodeFrame, type Frame, FrameDecoder, frameType } from '../../src/porter/frame.ts';
import { PayloadWriter } from '../../src/porter/payload.ts';
import type { BoxDoor } from '../../src/sandboxes/ports.ts';

export type Say = (type: number, stream: number, payload?: Buffer) => void;

/** As porter, for a host that has asked for this many streams. */
const welcome = (highestStream: number): Buffer =>
  new PayloadWriter()
    .u16(1)
    .u16(0)
    .u64(0n)
    .bytes('liar')
    .u32(1)
    .u32(65536)
    .u32(65536)
    .u32(highestStream)
    .end();

/** `answer` gets every frame but the greeting and pings, which are answered well, unless it says otherwise. */
export function lyingDoor(
  answer: (frame: Frame, say: Say, door: Duplex) => void,
  {
    answersPings = true,
    onWelcome = () => {},
  }: { readonly answersPings?: boolean; readonly onWelcome?: (say: Say, door: Duplex) => void } = {},
): BoxDoor {
  const decoder = new FrameDecoder();
  let epoch = 0;
  const say: Say = (type, stream, payload = Buffer.alloc(0)) => {
    if (!door.destroyed) door.push(encodeFrame({ type, epoch, stream, payload, more: false }));
  };
  const take = (frame: Frame): void => {
    if (frame.type === frameType.hello) {
      epoch = frame.epoch;
      say(frameType.welcome, 0, welcome(1000));
      onWelcome(say, door);
    } else if (frame.type === frameType.ping && answersPings)
      say(frameType.pong, 0, Buffer.from(frame.payload));
    else answer({ ...frame, payload: Buffer.from(frame.payload) }, say, door);
  };
  const door: BoxDoor = Object.assign(
    new Duplex({
      read: () => {},
      write: (chunk: Buffer, _encoding, done) => {
        for (const frame of decoder.push(chunk)) take(frame);
        done();
      },
    }),
    { stderrTail: '' },
  );
  return door;
}
