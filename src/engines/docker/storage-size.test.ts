import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { connectionTo, httpServer, temporaryFolder } from '../../../test/support/little-engine.ts';
import { StorageSize, sizeOption } from './storage-size.ts';

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

describe('[N5] an engine that refuses the size option', () => {
  it('is asked again after a while, and the refusal is reported', async () => {
    const asked: boolean[] = [];
    let isRefusing = true;
    const path = join(temporaryFolder(), 'engine.sock');
    await httpServer(async (request, response) => {
      const { url = '' } = request;
      if (url.includes('/info')) {
        response.end(JSON.stringify({ Driver: 'zfs', CgroupDriver: 'none', DefaultRuntime: 'runc' }));
        return;
      }
      const body = JSON.parse(await text(request)) as { HostConfig?: { StorageOpt?: unknown } };
      const hasSize = body.HostConfig?.StorageOpt !== undefined;
      asked.push(hasSize);
      const isRefused = hasSize && isRefusing;
      response.statusCode = isRefused ? 500 : 201;
      response.end(JSON.stringify(isRefused ? { message: 'try later' } : { Id: 'one', Warnings: [] }));
    }, path);
    let nowMs = 0;
    const storage = new StorageSize(connectionTo(path), () => nowMs);
    const reasons: string[] = [];
    const create = async () =>
      await storage.create({ name: 'x', body: { Image: 'x' } }, 2 ** 30, {
        refused: (reason) => void reasons.push(reason),
      });
    await create();
    isRefusing = false;
    await create();
    expect(asked).toEqual([true, false, false]);
    expect(reasons).toEqual([expect.stringContaining('try later')]);
    nowMs += 11 * 60_000;
    await create();
    expect(asked.at(-1)).toBe(true);
    expect(reasons).toHaveLength(1);
  });
});
