import { describe, expect, it } from 'vitest';
import { standardBox } from './hardening.ts';

const wish = {
  name: 'box',
  image: 'some-image',
  porterVolume: 'porter',
  labels: { a: 'b' },
  endsWithHost: true,
};

describe('standardBox', () => {
  it('[G4] gives 4 GiB, two CPUs, 512 processes and 65536 open files by default', () => {
    expect(standardBox(wish).limits).toMatchObject({
      memoryBytes: 4 * 2 ** 30,
      cpus: 2,
      pids: 512,
      nofile: 65536,
    });
  });

  it('[A11] never runs as root, and always names a group', () => {
    const { user } = standardBox(wish);
    expect(user.uid).toBeGreaterThanOrEqual(64000);
    expect(user.gid).toBeGreaterThanOrEqual(64000);
  });

  it.each([64 * 2 ** 20, 256 * 2 ** 20, 4 * 2 ** 30])(
    'lets memory files take at most half of %d bytes',
    (memoryBytes) => {
      const box = standardBox({ ...wish, memoryBytes });
      const files = box.limits.shmBytes + box.tmpfs.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
      expect(files).toBeLessThanOrEqual(memoryBytes / 2);
      expect(files).toBeGreaterThan(memoryBytes / 3);
    },
  );

  it('[C5] passes no environment but what was asked for', () => {
    expect(standardBox(wish).env).toEqual({});
    expect(standardBox({ ...wish, env: { A: '1' } }).env).toEqual({ A: '1' });
  });
});
