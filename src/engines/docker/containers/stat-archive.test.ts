import { describe, expect, it } from 'vitest';
import { readStat } from './stat-archive.ts';

const header = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64');

describe('readStat', () => {
  // As engines sent them.
  it.each([
    ['a file', 420, { kind: 'file', mode: 0o644, sizeBytes: 885 }],
    ['a folder', 2147484141, { kind: 'directory', mode: 0o755, sizeBytes: 885 }],
    ['a link', 134218239, { kind: 'other', mode: 0o777, sizeBytes: 885 }],
    ['/tmp', 2148532735, { kind: 'directory', mode: 0o1777, sizeBytes: 885 }],
    ['a device', 69206454, { kind: 'other', mode: 0o666, sizeBytes: 885 }],
  ])('reads %s', (_what, mode, expected) => {
    expect(readStat(header({ name: 'x', size: 885, mode }), '/x')).toEqual(expected);
  });

  it.each([undefined, '', 'x', header({ mode: 'x' }), header(null)])('refuses %j', (text) => {
    expect(() => readStat(text, '/x')).toThrow(expect.objectContaining({ code: 'engine_protocol' }));
  });
});
