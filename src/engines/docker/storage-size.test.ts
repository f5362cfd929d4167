import { describe, expect, it } from 'vitest';
import { sizeOption } from './storage-size.ts';

/** Names as `docker info` and Podman report them. */
describe('[N5] the size option of a container', () => {
  it.each([
    ['overlay2', 'xfs', 'written'],
    ['overlay', 'xfs', 'written'],
    ['btrfs', '', 'whole'],
    ['zfs', '', 'written'],
    // Always refused by the engine.
    ['overlay2', 'extfs', 'none'],
    ['overlay2', 'btrfs', 'none'],
    // containerd's snapshotter accepts and ignores the option.
    ['overlayfs', '', 'none'],
    ['overlayfs', 'xfs', 'none'],
    ['fuse-overlayfs', 'xfs', 'none'],
    ['vfs', 'xfs', 'none'],
    ['devicemapper', 'xfs', 'none'],
  ])('with %s on %s: %s', (storageDriver, backingFilesystem, expected) => {
    expect(sizeOption({ storageDriver, backingFilesystem })).toBe(expected);
  });
});
