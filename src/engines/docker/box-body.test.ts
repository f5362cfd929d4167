import { describe, expect, it } from 'vitest';
import { hardenedBox } from '../../policy/hardening.ts';
import { boxBody, podmanTraits } from './box-body.ts';

const box = hardenedBox({
  name: 'box',
  image: 'some-image',
  porterVolume: 'sallyport-porter-0123',
  labels: { 'dev.sallyport.owned': 'true' },
  endsWithHost: false,
});

describe('boxBody', () => {
  it('[N22] tells porter of a uid that is not its own', () => {
    expect(boxBody({ ...box, sharesUid: true }).Cmd).toEqual(['--nofile=65536', '--shared-uid']);
    const { Cmd } = boxBody({ ...box, sharesUid: true, borrows: true });
    expect(Cmd).toEqual(['--nofile=65536', '--shared-uid', '--borrow']);
  });

  it('[O2][O3] is the whole hardened request, and nothing depends on the machine it is made on', () => {
    expect(boxBody(box)).toEqual({
      Image: 'some-image',
      Entrypoint: ['/.sallyport/porter'],
      Cmd: ['--nofile=65536'],
      User: '64000:64000',
      Env: [],
      WorkingDir: '/tmp',
      Hostname: 'sallyport',
      Labels: { 'dev.sallyport.owned': 'true' },
      AttachStdin: true,
      AttachStdout: true,
      AttachStderr: true,
      OpenStdin: true,
      StdinOnce: false,
      Tty: false,
      StopSignal: 'SIGTERM',
      Healthcheck: { Test: ['NONE'] },
      HostConfig: {
        NetworkMode: 'none',
        Dns: ['127.0.0.1'],
        DnsSearch: ['.'],
        DnsOptions: ['timeout:1', 'attempts:1', 'ndots:0'],
        CapDrop: ['ALL'],
        SecurityOpt: ['no-new-privileges'],
        ReadonlyRootfs: false,
        Privileged: false,
        Memory: 4294967296,
        MemorySwap: 4294967296,
        CpuPeriod: 100000,
        CpuQuota: 200000,
        PidsLimit: 512,
        ShmSize: 536870912,
        IpcMode: 'private',
        LogConfig: { Type: 'none' },
        Init: false,
        AutoRemove: false,
        Tmpfs: { '/tmp': 'rw,nosuid,nodev,exec,size=1610612736,mode=1777' },
        Ulimits: [{ Name: 'core', Soft: 0, Hard: 0 }],
        Mounts: [
          {
            Type: 'volume',
            Source: 'sallyport-porter-0123',
            Target: '/.sallyport',
            ReadOnly: true,
            VolumeOptions: { NoCopy: true },
          },
        ],
      },
    });
  });

  it('[O3] makes a box that ends with its host also go away with it', () => {
    const body = boxBody({ ...box, endsWithHost: true });
    expect(body).toMatchObject({ StdinOnce: true, HostConfig: { AutoRemove: true } });
    expect(body.Cmd).toContain('--exit-with-host');
  });

  it('[R11] names a runtime only when one was chosen', () => {
    expect(boxBody(box).HostConfig).not.toHaveProperty('Runtime');
    expect(boxBody({ ...box, runtime: 'runsc' }).HostConfig).toMatchObject({ Runtime: 'runsc' });
  });

  it('asks for no limit of processes where one would put aside those of the engine itself', () => {
    expect(boxBody(box, podmanTraits).HostConfig?.Ulimits).toEqual([]);
  });

  it('[C2] leaves Podman no place in a read-only root to put writable memory at', () => {
    const closed = 'ro,nosuid,nodev,noexec,size=64k';
    const strict = { ...box, readOnlyRoot: true };
    expect(boxBody(strict, podmanTraits).HostConfig?.Tmpfs).toMatchObject({
      '/run': closed,
      '/var/tmp': closed,
    });
    expect(Object.keys(boxBody(strict).HostConfig?.Tmpfs ?? {})).toEqual(['/tmp']);
    expect(Object.keys(boxBody(box, podmanTraits).HostConfig?.Tmpfs ?? {})).toEqual(['/tmp']);
  });

  it('[O2] binds folders privately, and read-only ones without what is mounted further down', () => {
    const mounts = [
      { source: '/home/me/project', target: '/workspace', writable: true },
      { source: '/data', target: '/data', writable: false },
    ];
    expect(boxBody({ ...box, mounts }).HostConfig?.Mounts?.slice(1)).toEqual([
      {
        Type: 'bind',
        Source: '/home/me/project',
        Target: '/workspace',
        ReadOnly: false,
        BindOptions: { Propagation: 'rprivate', NonRecursive: false },
      },
      {
        Type: 'bind',
        Source: '/data',
        Target: '/data',
        ReadOnly: true,
        BindOptions: { Propagation: 'rprivate', NonRecursive: true },
      },
    ]);
  });

  it('[O2] gives no options to a bind that should be whole, where any would cut it off', () => {
    const mount = { source: '/data', target: '/data', writable: true };
    const bodies = [mount, { ...mount, writable: false }].map(
      (one) => boxBody({ ...box, mounts: [one] }, podmanTraits).HostConfig?.Mounts?.[1],
    );
    expect(bodies[0]).not.toHaveProperty('BindOptions');
    expect(bodies[1]).toHaveProperty('BindOptions.NonRecursive', true);
  });
});
