import { describe, expect, it } from 'vitest';
import { hardenedBox } from './hardening.ts';

const wish = {
  name: 'box',
  image: 'some-image',
  porterVolume: 'porter',
  labels: { a: 'b' },
  endsWithHost: true,
};

describe('hardenedBox', () => {
  it('[N5] gives 20 GiB of disk by default, and refuses less than anything could work with', () => {
    expect(hardenedBox(wish).limits.diskBytes).toBe(20 * 2 ** 30);
    expect(hardenedBox({ ...wish, diskBytes: 64 * 2 ** 20 }).limits.diskBytes).toBe(64 * 2 ** 20);
    expect(() => hardenedBox({ ...wish, diskBytes: 63 * 2 ** 20 })).toThrow(
      expect.objectContaining({ code: 'refused_by_policy', details: { field: 'limits.disk' } }),
    );
  });

  it('[G4] gives 4 GiB, two CPUs, 512 processes and 65536 open files by default', () => {
    expect(hardenedBox(wish).limits).toMatchObject({
      memoryBytes: 4 * 2 ** 30,
      cpus: 2,
      pids: 512,
      nofile: 65536,
    });
  });

  it('[A11] never runs as root, and always names a group', () => {
    const { user } = hardenedBox(wish);
    expect(user.uid).toBeGreaterThanOrEqual(64000);
    expect(user.gid).toBeGreaterThanOrEqual(64000);
  });

  it.each([64 * 2 ** 20, 256 * 2 ** 20, 4 * 2 ** 30])(
    'lets memory files take at most half of %d bytes',
    (memoryBytes) => {
      const box = hardenedBox({ ...wish, memoryBytes });
      const files = box.limits.shmBytes + box.tmpfs.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
      expect(files).toBeLessThanOrEqual(memoryBytes / 2);
      expect(files).toBeGreaterThan(memoryBytes / 3);
    },
  );

  it('[C5] passes no environment but what was asked for', () => {
    expect(hardenedBox(wish).env).toEqual({});
    expect(hardenedBox({ ...wish, env: { A: '1' } }).env).toEqual({ A: '1' });
  });

  it('[C2][O3] gives the strict profile exactly its table', () => {
    expect(hardenedBox({ ...wish, profile: 'strict' })).toMatchObject({
      user: { uid: 65534, gid: 65534 },
      limits: { memoryBytes: 256 * 2 ** 20, cpus: 0.5, pids: 100 },
      tmpfs: [{ target: '/tmp', sizeBytes: 64 * 2 ** 20, exec: false }],
      readOnlyRoot: true,
      labels: { 'dev.sallyport.sandbox': 'ephemeral' },
    });
  });

  it.each([
    ['memory', { memoryBytes: 257 * 2 ** 20 }],
    ['cpus', { cpus: 1 }],
    ['pids', { pids: 101 }],
    ['disk', { diskBytes: 21 * 2 ** 30 }],
  ])('[C2] refuses to raise %s above the strict profile, and lets it be lowered', (field, more) => {
    expect(() => hardenedBox({ ...wish, profile: 'strict', ...more })).toThrow(
      expect.objectContaining({ code: 'refused_by_policy', details: { field: `limits.${field}` } }),
    );
    const lower = hardenedBox({ ...wish, profile: 'strict', memoryBytes: 64 * 2 ** 20, cpus: 0.1, pids: 10 });
    expect(lower.limits).toMatchObject({ memoryBytes: 64 * 2 ** 20, cpus: 0.1, pids: 10 });
  });

  it('refuses a memory limit in which nothing starts, and says how sizes are written', () => {
    expect(() => hardenedBox({ ...wish, memoryBytes: 12 })).toThrow(
      expect.objectContaining({ advice: expect.stringContaining('512m is 512 MiB') }),
    );
  });
});
