import { describe, expect, test } from 'vitest';
import { sandboxRecord } from '../../test/support/store-records.ts';
import { expectations, forgetsRootAtStop, hostsOfMachine } from './expectations.ts';
import { parseShown } from './verify.ts';

const gib = 2 ** 30;

function find(name: string, shown: Record<string, string>) {
  const row = expectations(sandboxRecord(1), '/.sallyport').find((expectation) => expectation.name === name);
  if (row === undefined) throw new Error(`there is no row ${name}`);
  const found = row.find(new Map(Object.entries(shown)));
  return { found, fits: found !== undefined && (row.fits?.(found) ?? found === row.expected) };
}

describe('what is expected inside', () => {
  test.each([
    ['memory', { '/sys/fs/cgroup/memory/memory.limit_in_bytes': `${4 * gib}\n` }, true],
    ['memory', { '/sys/fs/cgroup/memory.max': `${4 * gib - 4096}\n` }, true],
    ['memory', { '/sys/fs/cgroup/memory.max': 'max\n' }, false],
    ['memory', { '/sys/fs/cgroup/memory.max': `${4 * gib + 4096}\n` }, false],
    ['memory', { '/sys/fs/cgroup/memory.max': `${gib}\n` }, false],
    ['cpus', { '/sys/fs/cgroup/cpu.max': '200000 100000\n' }, true],
    ['cpus', { '/sys/fs/cgroup/cpu.max': 'max 100000\n' }, false],
    [
      'cpus',
      { '/sys/fs/cgroup/cpu/cpu.cfs_quota_us': '-1\n', '/sys/fs/cgroup/cpu/cpu.cfs_period_us': '100000\n' },
      false,
    ],
    ['processes', { '/sys/fs/cgroup/pids.max': '512\n' }, true],
    ['processes', { '/sys/fs/cgroup/pids.max': 'max\n' }, false],
    ['seccomp', { '/proc/self/status': 'NoNewPrivs:\t1\nSeccomp:\t2\n' }, true],
    ['seccomp', { '/proc/self/status': 'NoNewPrivs:\t1\nSeccomp:\t0\n' }, false],
    ['interfaces', { '/proc/net/dev': 'Inter-| x\n face |bytes\n    lo: 0 0\n' }, true],
    ['interfaces', { '/proc/net/dev': 'Inter-| x\n face |bytes\n    lo: 0 0\n  eth0: 0 0\n' }, false],
    ['user', { '/proc/self/status': 'Uid:\t64000\t64000\t64000\t64000\n' }, true],
    ['user', { '/proc/self/status': 'Uid:\t64000\t0\t64000\t64000\n' }, false],
    ['other groups', { '/proc/self/status': 'Groups:\t64000 \n' }, true],
    ['other groups', { '/proc/self/status': 'Groups:\t0 64000 \n' }, false],
    ['capabilities eff', { '/proc/self/status': 'CapEff:\t0000000000000400\n' }, false],
    ['root', { '/proc/self/mountinfo': '1 0 0:1 / / rw,relatime - overlay overlay rw\n' }, true],
    ['/tmp', { '/proc/self/mountinfo': '1 0 0:1 / /tmp rw,nosuid,noexec - tmpfs tmpfs rw\n' }, false],
    ['mount /.sallyport', { '/proc/self/mountinfo': '1 0 0:1 / / rw - overlay overlay rw\n' }, false],
  ])('%s by %j: %s', (name, shown, fits) => {
    expect(find(name, shown).fits).toBe(fits);
  });

  test.each(['memory', 'processes', 'cpus', 'seccomp', 'user', 'interfaces', 'root'])(
    '%s is unknown where nothing is shown',
    (name) => {
      expect(find(name, {}).found).toBeUndefined();
    },
  );

  test('protected paths and what was left unprotected are rows of their own, also where a path has blanks', () => {
    const record = sandboxRecord(1);
    const root = { source: '/p', target: '/work', writable: true };
    const held = { source: '/p/my hooks ü', target: '/work/my hooks ü', writable: false };
    const other = { source: '/o', target: '/other', writable: false };
    const rows = expectations(
      {
        ...record,
        spec: { ...record.spec, workspace: { path: '/p', target: '/work', mode: 'live' } },
        plan: {
          ...record.plan,
          mounts: [root, held, other],
          unprotected: ['.vscode', '.idea'],
          sharedTools: ['uv'],
        },
      },
      '/.sallyport',
    );
    const row = rows.find(({ name }) => name === 'protected /work/my hooks ü');
    const line = Buffer.from('9 1 0:1 / /work/my\\040hooks\\040ü ro - ext4 /dev/x rw\n').toString('latin1');
    expect(row?.find(new Map([['/proc/self/mountinfo', line]]))).toBe('ro');
    expect(row?.find(new Map([['/proc/self/mountinfo', '']]))).toBe('nothing');
    expect(rows).toContainEqual(
      expect.objectContaining({ name: 'dangerously unprotected', expected: '.vscode .idea' }),
    );
    expect(rows).toContainEqual(expect.objectContaining({ name: 'tools in mode shared', expected: 'uv' }));
    expect(rows).toContainEqual(expect.objectContaining({ name: 'mount /other', expected: 'ro' }));
  });

  test('gVisor, which shows neither filter nor privileges, leaves them unknown', () => {
    expect(find('seccomp', { '/proc/self/status': 'Seccomp:\t0\n' }).found).toBeUndefined();
  });

  test.each([
    ['memory', { '/sys/fs/cgroup/memory/memory.limit_in_bytes': '9223372036854775807\n' }],
    ['processes', { '/sys/fs/cgroup/pids/pids.max': 'max\n' }],
    [
      'cpus',
      { '/sys/fs/cgroup/cpu/cpu.cfs_quota_us': '-1\n', '/sys/fs/cgroup/cpu/cpu.cfs_period_us': '100000\n' },
    ],
  ])('no limit of %s is unknown on gVisor, and fails on Linux', (name, shown) => {
    expect(find(name, { ...shown, '/proc/self/status': 'Seccomp:\t0\n' }).found).toBeUndefined();
    const onLinux = find(name, { ...shown, '/proc/self/status': 'NoNewPrivs:\t1\nSeccomp:\t2\n' });
    expect(onLinux).toMatchObject({ found: expect.any(String), fits: false });
  });

  test('gVisor with a layer over its root forgets at a stop what was written there', () => {
    const at = (kind: string, status: string) =>
      forgetsRootAtStop(
        new Map([
          ['/proc/self/status', status],
          ['/proc/self/mountinfo', `1 0 0:1 / / rw - ${kind} none rw\n`],
        ]),
      );
    expect(at('overlay', 'Seccomp:\t0\n')).toBe(true);
    expect(at('9p', 'Seccomp:\t0\n')).toBe(false);
    expect(at('overlay', 'NoNewPrivs:\t1\n')).toBe(false);
  });

  test('[N5] names of the machine in the hosts file are told from those of every container', () => {
    const names = (text: string) => hostsOfMachine(new Map([['/etc/hosts', text]]), ['sallyport', 'box-1']);
    const docker = '127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\nff02::1\tip6-allnodes\n';
    expect(names(docker)).toEqual([]);
    expect(names(`${docker}172.18.0.2\tsallyport\n`)).toEqual([]);
    const podman = '127.0.0.1 sallyport box-1\n10.0.0.7 host.containers.internal\n# wiki.corp\n';
    expect(names(`${docker}${podman}`)).toEqual([]);
    expect(names(`${docker}${podman}10.1.2.3 vault.corp vault # secret\n`)).toEqual(['vault.corp', 'vault']);
    expect(hostsOfMachine(new Map(), [])).toEqual([]);
  });

  test('another limit than was asked for fails on gVisor, too', () => {
    const shown = { '/proc/self/status': 'Seccomp:\t0\n', '/sys/fs/cgroup/memory.max': `${gib}\n` };
    expect(find('memory', shown)).toEqual({ found: String(gib), fits: false });
  });

  test('files are told apart from those that could not be opened', () => {
    expect(parseShown('== /a +\none\n\n== /b\n== /c +\n\n', ['/a', '/b', '/c'])).toEqual(
      new Map([
        ['/a', 'one\n'],
        ['/c', ''],
      ]),
    );
    expect(parseShown('== /b\n', ['/b'])).toEqual(new Map());
  });

  test('[N5] a file cannot say what is in one that was asked for before it', () => {
    const forged = '== /a +\ntrue\n\n== /z +\n1: @\n== /a +\nforged\n\n== /b +\nforged\n\n';
    expect(parseShown(forged, ['/a', '/z'])).toEqual(
      new Map([
        ['/a', 'true\n'],
        ['/z', '1: @\n== /a +\nforged\n\n== /b +\nforged\n'],
      ]),
    );
  });

  test('a path that begins like another one is not taken for it, and what was cut off is not shown', () => {
    const text = '== /a +\none\n== /bc +\nx == /b +\n\n== /b +\ntwo\n\n';
    expect(parseShown(text, ['/a', '/b'])).toEqual(
      new Map([
        ['/a', 'one\n== /bc +\nx == /b +\n'],
        ['/b', 'two\n'],
      ]),
    );
    expect(parseShown('== /a +\none\n\n== /b', ['/a', '/b', '/c']).has('/b')).toBe(false);
  });
});
