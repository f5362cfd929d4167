import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { temporaryFolder } from '../../test/support/little-engine.ts';
import { AppendFile } from './append-file.ts';

describe('a file of lines', () => {
  it('cuts an unfinished last line off, at every byte of it', () => {
    const path = join(temporaryFolder(), 'lines');
    const whole = 'first\nzweite … Zeile\n';
    const torn = Buffer.from(`${whole}{"third":"line ü"}`);
    for (let length = Buffer.byteLength(whole); length <= torn.length; length++) {
      writeFileSync(path, torn.subarray(0, length));
      const file = new AppendFile(path);
      expect(file.bytes).toBe(Buffer.byteLength(whole));
      file.append('next');
      file.close();
      expect(readFileSync(path, 'utf8')).toBe(`${whole}next\n`);
    }
  });

  it('finds the last whole line also far from the end, and copes with a file that has none', () => {
    const path = join(temporaryFolder(), 'lines');
    writeFileSync(path, `whole\n${'x'.repeat(200_000)}`);
    const far = new AppendFile(path);
    expect(far.bytes).toBe(6);
    far.close();
    writeFileSync(path, 'x'.repeat(200_000));
    const none = new AppendFile(path);
    expect(none.bytes).toBe(0);
    none.close();
  });

  it('says which file it could not open', () => {
    const path = join(temporaryFolder(), 'no', 'such', 'folder');
    expect(() => new AppendFile(path)).toThrow(
      expect.objectContaining({ code: 'state_failed', details: { path } }),
    );
  });
});
