import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Demultiplexer, type OutputName } from './demultiplex.ts';

interface Frame {
  readonly name: OutputName;
  readonly payload: Uint8Array;
}

function encode(frames: readonly Frame[]): Buffer {
  return Buffer.concat(
    frames.flatMap(({ name, payload }) => {
      const header = Buffer.alloc(8);
      header[0] = name === 'stdout' ? 1 : 2;
      header.writeUInt32BE(payload.length, 4);
      return [header, payload];
    }),
  );
}

/** The bytes cut at the given places, in any order and with repetitions: also empty chunks are chunks. */
function chop(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const places = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
  return places.slice(1).map((end, index) => bytes.subarray(places[index], end));
}

function collect(): { demultiplexer: Demultiplexer; text: (name: OutputName) => string } {
  const outputs: Record<OutputName, Buffer[]> = { stdout: [], stderr: [] };
  const demultiplexer = new Demultiplexer((name, payload) => outputs[name].push(Buffer.from(payload)));
  return { demultiplexer, text: (name) => Buffer.concat(outputs[name]).toString('hex') };
}

const frame = fc.record({
  name: fc.constantFrom<OutputName>('stdout', 'stderr'),
  payload: fc.uint8Array({ maxLength: 200 }),
});

describe('Demultiplexer', () => {
  it('gives out the same bytes per stream, however the frames are chopped', () => {
    fc.assert(
      fc.property(fc.array(frame), fc.array(fc.nat()), (frames, cuts) => {
        const { demultiplexer, text } = collect();
        for (const chunk of chop(encode(frames), cuts)) demultiplexer.push(chunk);
        for (const name of ['stdout', 'stderr'] as const) {
          const expected = Buffer.concat(frames.filter((f) => f.name === name).map((f) => f.payload));
          expect(text(name)).toBe(expected.toString('hex'));
        }
        expect(demultiplexer.atBoundary).toBe(true);
      }),
    );
  });

  it('knows when the stream broke off inside a frame', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 1, maxLength: 50 }), fc.nat(), (payload, at) => {
        const bytes = encode([{ name: 'stdout', payload }]);
        const { demultiplexer } = collect();
        demultiplexer.push(bytes.subarray(0, 1 + (at % (bytes.length - 1))));
        expect(demultiplexer.atBoundary).toBe(false);
      }),
    );
  });

  it('hands a payload on as it comes, so that a claimed length of 4 GiB costs no memory', () => {
    const { demultiplexer, text } = collect();
    demultiplexer.push(Buffer.from('01000000ffffffff', 'hex'));
    demultiplexer.push(Buffer.from('ab', 'hex'));
    expect(text('stdout')).toBe('ab');
  });

  it.each(['0000000000000001', '0300000000000001', '0101000000000001', '48545450312e3120'])(
    'refuses a header %s that no engine sends',
    (header) => {
      const { demultiplexer } = collect();
      expect(() => demultiplexer.push(Buffer.from(header, 'hex'))).toThrow(
        expect.objectContaining({ code: 'engine_protocol' }),
      );
    },
  );
});
