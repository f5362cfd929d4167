import { describe, expect, it } from 'vitest';
import { type Attempt, discoveryError } from '../../engines/docker/discover.ts';
import { SallyportError } from '../../protocol/errors.ts';
import { type BubblewrapFacts, checkBubblewrap } from './bubblewrap.ts';
import { summarise } from './check.ts';
import { checkDisk } from './disk.ts';
import { checkEngineFound } from './engine-found.ts';
import { checkHostGit } from './host-git.ts';
import {
  checkCgroups,
  checkIsolationLevels,
  checkLimits,
  checkRuntimes,
  checkSeccomp,
  checkStorage,
  checkUserNamespaces,
} from './isolation.ts';
import { checkPorter } from './porter.ts';

const gib = 2 ** 30;

describe('checkEngineFound', () => {
  it('[G3] tells every place that was looked at, and why none was chosen', () => {
    const endpoint = 'unix:///x.sock';
    const attempts: Attempt[] = [
      {
        source: 'OrbStack',
        endpoint,
        outcome: 'failed',
        exclusive: false,
        error: new SallyportError('engine_unreachable', `no engine at ${endpoint}: there is no socket`),
      },
      {
        source: 'Podman',
        endpoint,
        outcome: 'failed',
        exclusive: false,
        error: new SallyportError('engine_permission_denied', `permission denied on ${endpoint}`),
      },
    ];
    expect(checkEngineFound({ attempts })).toEqual({
      id: 'engine',
      title: 'engine',
      status: 'fail',
      value: `permission denied on ${endpoint}`,
      advice: discoveryError(attempts).advice,
      details: [`OrbStack (${endpoint}): there is no socket`, `Podman (${endpoint}): permission denied`],
    });
  });
});

describe('isolation checks', () => {
  it.each([
    ['overlay2', 'ok'],
    ['overlayfs', 'ok'],
    ['vfs', 'warn'],
    ['devicemapper', 'warn'],
  ])('storage driver %s: %s', (driver, status) => {
    expect(checkStorage(driver).status).toBe(status);
  });

  it.each([
    ['1', 'warn'],
    ['2', 'ok'],
  ])('cgroup v%s: %s', (cgroupVersion, status) => {
    expect(checkCgroups({ cgroupVersion, cgroupDriver: 'systemd' }).status).toBe(status);
  });

  it.each([
    [['name=seccomp,profile=builtin'], 'ok', 'profile builtin'],
    [['name=apparmor', 'name=seccomp,profile=default'], 'ok', 'profile default'],
    [['name=seccomp,profile=unconfined'], 'fail', 'the engine runs containers unconfined'],
    [['name=apparmor'], 'fail', 'not supported by this engine'],
  ])('seccomp of %j: %s', (options, status, value) => {
    expect(checkSeccomp(options)).toMatchObject({ status, value });
  });

  it.each([
    [['name=rootless'], 'rootless engine'],
    [['name=userns'], 'user ids are remapped'],
    [[], 'not remapped; a sandbox never runs as root'],
  ])('user namespaces of %j', (options, value) => {
    expect(checkUserNamespaces(options).value).toBe(value);
  });

  it.each([
    [{ memory: true, cpu: true, pids: true, swap: true }, 'ok'],
    [{ memory: true, cpu: true, pids: true, swap: false }, 'warn'],
    [{ memory: true, cpu: true, pids: false, swap: true }, 'fail'],
    [{ memory: false, cpu: false, pids: false, swap: false }, 'fail'],
  ])('limits %j: %s', (limits, status) => {
    expect(checkLimits(limits).status).toBe(status);
  });

  it.each([
    [['runc', 'io.containerd.runc.v2'], 'runc', 'container (runc), no vm (kata, krun), no gvisor (runsc)'],
    [['runc', 'runsc'], 'runc', 'gvisor (runsc), container (runc), no vm (kata, krun)'],
    [
      ['runc', 'runsc', 'kata-qemu', 'krun'],
      'runc',
      'vm (kata-qemu, krun), gvisor (runsc), container (runc)',
    ],
    [[], 'crun', 'container (crun), no vm (kata, krun), no gvisor (runsc)'],
  ])('[R11] names the isolation levels that %j offer', (runtimes, defaultRuntime, value) => {
    expect(checkIsolationLevels({ runtimes, defaultRuntime })).toMatchObject({ status: 'ok', value });
  });

  it('names the runtimes that isolate more, and leaves out the aliases of runc', () => {
    const runtimes = ['io.containerd.runc.v2', 'runc', 'runsc', 'kata-qemu'];
    expect(checkRuntimes({ runtimes, defaultRuntime: 'runc' }).value).toBe(
      'runc (default), runsc, kata-qemu',
    );
    expect(checkRuntimes({ runtimes: ['runc'], defaultRuntime: 'runc' }).value).toMatch(/none of gVisor/);
  });
});

describe('machine checks', () => {
  it.each([
    [100 * gib, 'ok'],
    [10 * gib, 'ok'],
    [9 * gib, 'warn'],
    [2 * gib, 'warn'],
    [gib, 'fail'],
    [0, 'fail'],
    [undefined, 'ok'],
  ])('%s bytes of free disk: %s', (freeBytes, status) => {
    expect(checkDisk('disk', 'disk', { folder: '/data', freeBytes }).status).toBe(status);
  });

  it.each<[string, Partial<BubblewrapFacts>, string]>([
    ['there', { version: '0.8.0', maxUserNamespaces: 1000 }, 'ok'],
    ['missing', {}, 'warn'],
    ['missing on a Mac', { platform: 'darwin' }, 'ok'],
    ['without user namespaces', { version: '0.8.0', maxUserNamespaces: 0 }, 'warn'],
    ['closed to users', { version: '0.8.0', unprivilegedClone: 0 }, 'warn'],
    ['closed to users, asked by root', { version: '0.8.0', unprivilegedClone: 0, isRoot: true }, 'ok'],
    ['restricted by AppArmor', { version: '0.9.0', appArmorRestricts: 1 }, 'warn'],
  ])('bubblewrap %s', (_name, facts, status) => {
    expect(checkBubblewrap({ platform: 'linux', isRoot: false, ...facts }).status).toBe(status);
  });

  it('fails without a porter for the architecture of the engine', () => {
    const facts = { architecture: 'arm64', path: '/p/porter-arm64' };
    expect(checkPorter(facts).status).toBe('fail');
    const there = checkPorter({ ...facts, sizeBytes: 2048, sha256: 'abcdef0123456789' });
    expect(there).toMatchObject({ status: 'ok', value: 'arm64, 2.0 KiB, sha256 abcdef012345' });
  });

  it('counts', () => {
    const check = { id: 'x', title: 'x', value: '' };
    const checks = (['ok', 'ok', 'warn', 'fail'] as const).map((status) => ({ ...check, status }));
    expect(summarise(checks)).toEqual({ ok: 2, warn: 1, fail: 1 });
  });
});

describe('checkHostGit', () => {
  it('[N5] is content only with a git that knows the setting', () => {
    const set = { bareRepository: 'explicit' };
    expect(checkHostGit({}).status).toBe('ok');
    expect(checkHostGit({ version: '2.38.0', ...set }).status).toBe('ok');
    expect(checkHostGit({ version: '2.39.5 (Apple Git-154)', ...set }).status).toBe('ok');
    const command = 'git config --global safe.bareRepository explicit';
    expect(checkHostGit({ version: '2.39.5' })).toMatchObject({
      status: 'warn',
      advice: `Run \`${command}\`.`,
    });
    for (const facts of [{ version: '2.34.1', ...set }, { version: '2.34.1' }])
      expect(checkHostGit(facts)).toMatchObject({
        status: 'warn',
        advice: expect.stringMatching(/^Update git to 2\.38 .*safe\.bareRepository explicit/),
      });
  });
});
