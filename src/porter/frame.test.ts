import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { encodeFrame, type Frame, FrameDecoder, headerBytes, maxPayloadBytes } from './frame.ts';

const frames = fc.array(
  fc.record({
    type: fc.integer({ min: 0, max: 255 }),
    epoch: fc.nat(0xffffffff),
    stream: fc.nat(0xffffffff),
    more: fc.boolean(),
    payload: fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
  }),
  { maxLength: 20 },
);

function decodeAll(decoder: FrameDecoder, chunks: readonly Buffer[]): Frame[] {
  return chunks.flatMap((chunk) => [...decoder.push(chunk)]);
}

function chop(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const at = [...new Set([0, ...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length])].sort(
    (a, b) => a - b,
  );
  return at.slice(1).map((end, index) => bytes.subarray(at[index], end));
}

describe('FrameDecoder', () => {
  it('gives back every frame whatever way the stream is chopped', () => {
    fc.assert(
      fc.property(frames, fc.array(fc.nat(), { maxLength: 40 }), (sent, cuts) => {
        const decoder = new FrameDecoder();
        const received = decodeAll(decoder, chop(Buffer.concat(sent.map(encodeFrame)), cuts));
        expect(received).toEqual(sent);
        expect(decoder.atBoundary).toBe(true);
      }),
      { numRuns: 300 },
    );
  });

  it('takes a frame of the largest size byte by byte', () => {
    const payload = Buffer.alloc(maxPayloadBytes, 'x');
    const bytes = encodeFrame({ type: 1, epoch: 2, stream: 3, more: false, payload });
    const received = decodeAll(new FrameDecoder(), chop(bytes, [...bytes.keys()]));
    expect(received).toEqual([{ type: 1, epoch: 2, stream: 3, more: false, payload }]);
  });

  it('refuses a frame in which any one bit was turned', () => {
    const bytes = encodeFrame({
      type: 0x91,
      epoch: 7,
      stream: 9,
      more: false,
      payload: Buffer.from('hello'),
    });
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      const turned = Buffer.from(bytes);
      turned[bit >> 3] = (turned[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      let received: Frame[] | undefined;
      try {
        received = decodeAll(new FrameDecoder(), [turned]);
      } catch (error) {
        expect(error).toMatchObject({ code: 'porter_protocol' });
        continue;
      }
      // A length that grew makes the frame incomplete: nothing may come of it.
      expect(received).toEqual([]);
    }
  });

  it('never throws anything but porter_protocol, and never holds more than a frame, on random bytes', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 200 }), { maxLength: 20 }), (chunks) => {
        const decoder = new FrameDecoder();
        try {
          decodeAll(
            decoder,
            chunks.map((chunk) => Buffer.concat([Buffer.from('SP'), chunk])),
          );
        } catch (error) {
          expect(error).toMatchObject({ code: 'porter_protocol' });
        }
      }),
    );
  });

  it('keeps a torn frame pending', () => {
    const decoder = new FrameDecoder();
    const bytes = encodeFrame({ type: 1, epoch: 0, stream: 0, more: false, payload: Buffer.from('abc') });
    expect(decodeAll(decoder, [bytes.subarray(0, headerBytes + 1)])).toEqual([]);
    expect(decoder.atBoundary).toBe(false);
  });
});

describe('encodeFrame', () => {
  it('refuses a payload that no decoder would take', () => {
    const payload = Buffer.alloc(maxPayloadBytes + 1);
    expect(() => encodeFrame({ type: 1, epoch: 0, stream: 0, more: false, payload })).toThrow(RangeError);
  });
});
