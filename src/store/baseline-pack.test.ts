import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { temporaryFolder } from '../../test/support/little-engine.ts';
import { requirement } from '../../test/support/requires.ts';
import { openPack, readPack } from './baseline-pack.ts';

const large = Buffer.alloc(3 * 1024 * 1024, 'large');

describe('the content of what was copied in', () => {
  it('is read back from where it was put, also by a later writer’s pack', async () => {
    const path = join(temporaryFolder(), 'baseline.pack');
    const first = await openPack(path);
    expect(first.bytes).toBe(0);
    await first.write(Buffer.from('one'));
    await first.write(large);
    await first.close();
    await first.close();
    const second = await openPack(path);
    expect(second.bytes).toBe(3 + large.length);
    await second.write(Buffer.from('two'));
    await second.close();
    expect((await buffer(readPack(path, 0, 3))).toString()).toBe('one');
    expect((await buffer(readPack(path, 3, large.length))).equals(large)).toBe(true);
    expect((await buffer(readPack(path, 3 + large.length, 3))).toString()).toBe('two');
  });

  it('is an error where the file is shorter than it must be, or not there', async () => {
    const path = join(temporaryFolder(), 'baseline.pack');
    await expect(buffer(readPack(path, 0, 1))).rejects.toMatchObject({ code: 'state_failed' });
    const pack = await openPack(path);
    await pack.write(Buffer.from('abc'));
    await pack.close();
    await expect(buffer(readPack(path, 2, 2))).rejects.toMatchObject({ code: 'state_failed' });
  });

  describe.runIf(requirement('/dev/full', existsSync('/dev/full')))('on a full disk', () => {
    it('is refused with a typed error, at once or at the end', async () => {
      const pack = await openPack('/dev/full');
      await expect(pack.write(large)).rejects.toMatchObject({ code: 'disk_full' });
      const small = await openPack('/dev/full');
      await small.write(Buffer.from('x'));
      await expect(small.close()).rejects.toMatchObject({ code: 'disk_full' });
    });
  });
});
