import { describe, expect, it } from 'vitest';
import { CopyMeter } from './copy-meter.ts';

const bounds = { entries: 3, bytes: 100, holeBytes: 50 };
const path = (name: string): Buffer => Buffer.from(name);

describe("[N5] the copy of a tool's folder", () => {
  it('may have as much as its bounds say', () => {
    const meter = new CopyMeter('/home/u/.claude', bounds);
    for (const name of ['a', 'b', 'c']) meter.addEntry(path(name), 16);
    meter.addData(path('a'), 100);
  });

  it.each([
    ['entries', (meter: CopyMeter) => [1, 2, 3, 4].map((name) => meter.addEntry(path(`${name}`), 0))],
    ['data', (meter: CopyMeter) => [1, 2].map((name) => meter.addData(path(`${name}`), 51))],
    ['holes', (meter: CopyMeter) => [1, 2].map((name) => meter.addEntry(path(`${name}`), 26))],
  ])('is refused with more %s, and the error names the folder', (_what, fill) => {
    expect(() => fill(new CopyMeter('/home/u/.claude', bounds))).toThrowError(
      expect.objectContaining({
        code: 'copy_too_large',
        message: expect.stringContaining('/home/u/.claude '),
      }),
    );
  });
});
