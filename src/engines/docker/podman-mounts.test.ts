import { describe, expect, it } from 'vitest';
import { requirePodmanMounts } from './podman-mounts.ts';

const here = { source: '/', target: '/workspace', writable: true };

describe('binds on Podman', () => {
  it.each([
    ['a source that would add a field', { ...here, source: '/tmp/x,target=/etc' }],
    ['a target that would add a field', { ...here, target: '/x,readonly=false' }],
    ['a quote', { ...here, source: '/tmp/"x"' }],
    ['a line break', { ...here, source: '/tmp/x\n' }],
  ])('[O4] refuses %s', (_what, mount) => {
    expect(() => requirePodmanMounts([here, mount], false)).toThrow(
      expect.objectContaining({ code: 'refused_by_policy' }),
    );
  });

  it('refuses a source that Podman would make, where it can be seen', () => {
    const missing = { ...here, source: '/no/such/folder' };
    expect(() => requirePodmanMounts([missing], true)).toThrow(
      expect.objectContaining({ code: 'engine_failed' }),
    );
    expect(() => requirePodmanMounts([missing], false)).not.toThrow();
    expect(() => requirePodmanMounts([here], true)).not.toThrow();
  });
});
