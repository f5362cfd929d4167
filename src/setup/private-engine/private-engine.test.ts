import { describe, expect, it } from 'vitest';
import { dockerdArguments } from './arguments.ts';
import { bridgeOf } from './bridge.ts';
import { lastLogLines } from './log-tail.ts';
import { mountsBelow } from './mounts.ts';
import { isOurContainerd, isOurDaemon, isOurShim } from './owned-processes.ts';
import { privateEnginePaths } from './paths.ts';

const paths = privateEnginePaths({});

describe('privateEnginePaths', () => {
  it('is one fixed place for the machine by default, so that every user finds it again', () => {
    expect(paths).toMatchObject({
      socket: '/run/sallyport/engine/docker.sock',
      pidFile: '/run/sallyport/engine/docker.pid',
      execRoot: '/run/sallyport/engine/exec',
      dataRoot: '/var/lib/sallyport/engine/data',
      logFile: '/var/lib/sallyport/engine/dockerd.log',
      separate: false,
    });
  });

  it('is wholly under SALLYPORT_ENGINE_DIR where that is set', () => {
    const { separate, ...places } = privateEnginePaths({ engineDir: '/tmp/e/' });
    expect(separate).toBe(true);
    for (const place of Object.values(places)) expect(place).toMatch(/^\/tmp\/e(\/|$)/);
  });

  it.each(['relative/folder', '/', `/tmp/${'x'.repeat(70)}`])('refuses %j', (engineDir) => {
    expect(() => privateEnginePaths({ engineDir })).toThrow(expect.objectContaining({ code: 'usage' }));
  });

  it('takes the longest path whose sockets still fit into 107 bytes', () => {
    const longest = `/${'x'.repeat(106 - '/exec/containerd/containerd.sock.ttrpc'.length)}`;
    expect(privateEnginePaths({ engineDir: longest }).runDir).toBe(longest);
    expect(() => privateEnginePaths({ engineDir: `${longest}x` })).toThrow(/1 bytes too long/);
  });
});

describe('dockerdArguments', () => {
  it("keeps the default engine off Docker's default address pool", () => {
    expect(dockerdArguments(paths).join(' ')).toContain(
      '--bridge sally0 --default-address-pool base=10.214.0.0/16,size=26',
    );
    expect(bridgeOf(paths).address).toBe('10.213.0.1/24');
  });

  it('gives an engine in a folder of its own a bridge of its own, and keeps it away from the firewall', () => {
    const other = privateEnginePaths({ engineDir: '/tmp/e' });
    const { name } = bridgeOf(other);
    expect(name).toMatch(/^sally[0-9a-f]{8}$/);
    expect(name).not.toBe(bridgeOf(privateEnginePaths({ engineDir: '/tmp/f' })).name);
    expect(dockerdArguments(other).join(' ')).toContain(`--bridge ${name} --iptables=false`);
  });

  it('never says --bridge=none, which would delete the docker0 of another engine', () => {
    for (const engine of [paths, privateEnginePaths({ engineDir: '/tmp/e' })]) {
      expect(dockerdArguments(engine).join(' ')).not.toMatch(/bridge[= ]none/);
    }
  });
});

describe('which processes are ours', () => {
  const ours = { uid: 0, inOurPidNamespace: true, argv: ['/usr/sbin/dockerd', ...dockerdArguments(paths)] };

  it.each([
    ['our dockerd', ours, true],
    [
      'our dockerd with = in its options',
      {
        ...ours,
        argv: ['dockerd', `--pidfile=${paths.pidFile}`, `--host=unix://${paths.socket}`],
      },
      true,
    ],
    ['another dockerd', { ...ours, argv: ['dockerd', '-H', 'fd://'] }, false],
    ['an editor that has the pidfile open', { ...ours, argv: ['vi', '--pidfile', paths.pidFile] }, false],
    [
      'a dockerd with our pidfile and another socket',
      { ...ours, argv: ['dockerd', '--pidfile', paths.pidFile] },
      false,
    ],
    ["an ordinary user's imitation", { ...ours, uid: 1000 }, false],
    ['an imitation in a container', { ...ours, inOurPidNamespace: false }, false],
    ['a kernel thread', { ...ours, argv: [] }, false],
  ])('tells %s', (_name, process, expected) => {
    expect(isOurDaemon(process, paths)).toBe(expected);
  });

  it('knows its containerd and shims by the paths they were given', () => {
    const config = `${paths.execRoot}/containerd/containerd.toml`;
    const address = `${paths.execRoot}/containerd/containerd.sock`;
    const process = (...argv: readonly string[]) => ({ ...ours, argv });
    expect(isOurContainerd(process('containerd', '--config', config), paths)).toBe(true);
    expect(isOurContainerd(process('containerd', '--config', '/etc/containerd/config.toml'), paths)).toBe(
      false,
    );
    expect(isOurShim(process('/usr/bin/containerd-shim-runc-v2', '-address', address), paths)).toBe(true);
    expect(isOurShim(process('/usr/bin/containerd-shim-runc-v2', '-address', '/run/x.sock'), paths)).toBe(
      false,
    );
  });
});

describe('mountsBelow', () => {
  it('finds the mounts of a folder, the deepest first, and not those of its neighbours', () => {
    const mountinfo = [
      '20 1 8:1 / / rw - ext4 /dev/a rw',
      '21 20 0:4 net:[4026] /run/e/exec/netns/default rw - nsfs nsfs rw',
      '22 20 0:5 / /run/e/exec rw - tmpfs tmpfs rw',
      '23 20 0:6 / /run/e/exec\\040two rw - tmpfs tmpfs rw',
      '24 20 0:7 / /run/e/executive rw - tmpfs tmpfs rw',
      '',
    ].join('\n');
    expect(mountsBelow(mountinfo, '/run/e/exec')).toEqual(['/run/e/exec/netns/default', '/run/e/exec']);
    expect(mountsBelow(mountinfo, '/run/e/exec two')).toEqual(['/run/e/exec two']);
  });
});

describe('lastLogLines', () => {
  it('keeps the messages of the last lines', () => {
    const log =
      'time="t" level=info msg="one"\n\nfailed to start: \\ plain\ntime="t" level=error msg="a \\"b\\"" error="c"\n';
    expect(lastLogLines(log, 2)).toEqual(['failed to start: \\ plain', 'a "b": c']);
  });
});
