/** What somebody inside a box of bubblewrap tries first. Each denial is the kernel's answer, read by a program inside. */

import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chmod, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, onTestFinished, test } from 'vitest';
import { keeperBinaryPath } from '../../src/porter/binary.ts';
import type { SandboxRecord } from '../../src/sandboxes/records.ts';
import { nativeArchitecture } from '../support/porter-child.ts';
import { commandExists, isRoot, requirement } from '../support/requires.ts';
import { openSandboxes, runInSandbox } from '../support/sandboxes.ts';
import { asRoot, when } from '../support/selection.ts';

const isThere = requirement('bubblewrap and python3', commandExists('bwrap') && commandExists('python3'));

/** Where a sandbox sees its limit of memory. */
const limitsFile = existsSync('/sys/fs/cgroup/cgroup.controllers')
  ? '/sys/fs/cgroup/memory.max'
  : '/sys/fs/cgroup/memory/memory.limit_in_bytes';

/**
 * One line for each attempt: its name, and what the kernel said. Each has a process of its own, so that one which succeeds changes
 * nothing for the next. With the argument `outside` root does the same on the host, for the controls: with a terminal, in a mount and
 * a host name namespace of its own, where /tmp, /usr and /etc are empty memory.
 */
const attempts = (hostPid: number, hostSocket: string, hostLimits = ''): string => `
import ctypes, errno, fcntl, os, platform, pty, signal, socket, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
ARM = platform.machine() == 'aarch64'
OUTSIDE = sys.argv[1:] == ['outside']
if OUTSIDE:
    own = os.dup(1)
    child, _ = pty.fork()
    if child != 0:
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    sys.stdout = os.fdopen(own, 'w')
def set_apart():
    assert libc.unshare(0x20000 | 0x4000000) == 0
    assert libc.mount(b'none', b'/', None, 0x44000, None) == 0
    for place in (b'/tmp', b'/usr', b'/etc'):
        assert libc.mount(b'none', place, b'tmpfs', 0, None) == 0
    open('/tmp/porter', 'w').close()
def apart(name, act):
    sys.stdout.flush()
    child = os.fork()
    if child != 0:
        if os.waitpid(child, 0)[1] != 0:
            sys.exit(name + ' did not answer')
        return
    if OUTSIDE:
        set_apart()
    print(name, act(), flush=True)
    os._exit(0)
def call(name, x86, arm, *arguments):
    values = [ctypes.c_char_p(each) if isinstance(each, bytes) else ctypes.c_long(each) for each in arguments]
    def act():
        result = libc.syscall(ctypes.c_long(arm if ARM else x86), *values)
        # The child of a clone that succeeded.
        if name == 'clone-user' and result == 0:
            os._exit(0)
        return 'done' if result >= 0 else errno.errorcode[ctypes.get_errno()]
    apart(name, act)
def tried(name, attempt):
    def act():
        try:
            attempt()
            return 'done'
        except OSError as error:
            return errno.errorcode[error.errno]
    apart(name, act)
FIRST = '/proc/${hostPid}' if OUTSIDE else '/proc/1'
PORTER = '/tmp/porter' if OUTSIDE else '/.sallyport/porter'
LIMITS = '${hostLimits}' if OUTSIDE else '${limitsFile}'
# Opened and not written: outside it would be a setting of this machine.
def open_to_write(path):
    os.close(os.open(path, os.O_RDWR))
# Node pads the name of such a socket up to the length of an address, or not, by its version.
def reach(name):
    try:
        socket.socket(socket.AF_UNIX).connect(name)
    except OSError:
        socket.socket(socket.AF_UNIX).connect(name.ljust(108, '\\0'))
REMOUNT_BIND = 0x1020
call('remount', 165, 40, b'none', b'/usr', b'', REMOUNT_BIND, 0)
call('mount-host', 165, 40, b'/dev/none' if OUTSIDE else b'/dev/vda', b'/tmp', b'ext4', 0, 0)
call('mount-memory', 165, 40, b'none', b'/tmp', b'tmpfs', 0, 0)
call('mount-proc', 165, 40, b'proc', b'/tmp', b'proc', 0, 0)
call('umount', 166, 39, b'/usr', 0)
call('pivot', 155, 41, b'/tmp', b'/tmp')
call('chroot', 161, 51, b'/tmp')
call('new-user', 272, 97, 0x10000000)
call('new-mounts', 272, 97, 0x20000)
call('enter', 308, 268, 0, 0)
call('clone-user', 56, 220, 0x10000000 | 17, 0, 0, 0, 0)
call('clone3', 435, 435, 0, 0)
call('keyctl', 250, 219, 0, 0, 0, 0, 0)
call('add-key', 248, 217, b'user', b'name', b'value', 5, -2)
call('bpf', 321, 280, 0, 0, 0)
call('perf', 298, 241, 0, 0, 0, 0, 0)
call('io-uring', 425, 425, 8, 0)
call('userfaultfd', 323, 282, 0)
call('by-handle', 304, 265, 0, 0, 0)
call('mount-api', 430, 430, b'ext4', 0)
call('listmount', 458, 458, 0, 0, 0, 0)
call('module', 175, 105, 0, 0, b'')
call('hostname', 170, 161, b'other', 5)
call('clock', 227, 112, 0, 0)
call('kernel-log', 103, 116, 3, 0, 0)
call('personality', 135, 92, 0x0040000)
call('future', 1000, 1000)
call('ptrace-outside', 101, 117, 16, ${hostPid}, 0, 0)
tried('signal-outside', lambda: os.kill(${hostPid}, 0))
tried('see-outside', lambda: os.stat('/proc/${hostPid}/status'))
tried('become-root', lambda: os.setuid(0))
tried('core-pattern', lambda: open_to_write('/proc/sys/kernel/core_pattern'))
tried('ip-forward', lambda: open_to_write('/proc/sys/net/ipv4/ip_forward'))
tried('unprivileged-ports', lambda: open_to_write('/proc/sys/net/ipv4/ip_unprivileged_port_start'))
tried('max-namespaces', lambda: open_to_write('/proc/sys/user/max_user_namespaces'))
tried('sysrq', lambda: open_to_write('/proc/sysrq-trigger'))
tried('write-usr', lambda: open('/usr/planted', 'w'))
tried('write-etc', lambda: open('/etc/planted', 'w'))
tried('write-porter', lambda: open_to_write(PORTER))
tried('open-porter', lambda: os.chmod(PORTER, 0o777))
tried('write-limits', lambda: open_to_write(LIMITS))
tried('device', lambda: os.mknod('/tmp/disk', 0o60600, os.makedev(8, 0)))
tried('terminal', lambda: open_to_write('/dev/tty'))
tried('type-ahead', lambda: fcntl.ioctl(0, 0x5412, b'x'))
tried('porter-memory', lambda: open_to_write(FIRST + '/mem'))
tried('porter-files', lambda: os.listdir(FIRST + '/fd'))
tried('porter-root', lambda: os.listdir(FIRST + '/root'))
tried('vsock', lambda: socket.socket(40, socket.SOCK_STREAM))
tried('packets', lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW))
tried('host-socket', lambda: reach('\\0${hostSocket}'))
if OUTSIDE:
    sys.exit()
print('files', ','.join(sorted(os.listdir('/'))))
print('homes', ','.join(os.listdir('/home')))
print('run', ','.join(os.listdir('/run')), ','.join(os.listdir('/var')))
print('devices', ','.join(sorted(os.listdir('/dev'))))
def leads_to(fd):
    try:
        return os.readlink('/proc/self/fd/' + fd)
    except FileNotFoundError: # That of the listing itself.
        return '/usr'
# libffi 3.5, which ctypes loads, keeps its own file open.
print('inherited', [t for t in map(leads_to, sorted(os.listdir('/proc/self/fd'), key=int)[3:]) if not t.startswith('/usr')])
print('secrets', [p for p in ('/etc/shadow', '/etc/sudoers', '/etc/ssh', '/root', '/etc/machine-id') if os.path.exists(p)])
print('processes', sorted(int(p) for p in os.listdir('/proc') if p.isdigit())[0])
print('suid', [l.split()[4] for l in open('/proc/self/mountinfo') if 'nosuid' not in l.split()[5]])
`;

type Findings = Readonly<Record<string, string>>;

function answers(text: string): Findings {
  const lines = text.trim().split('\n');
  return Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf(' ')), line.slice(line.indexOf(' ') + 1)]),
  );
}

/** In the network namespace of the host, where a box has no way to it. */
async function abstractSocket(): Promise<string> {
  const name = `sallyport-escape-${process.pid}`;
  const server = createServer((socket) => socket.destroy());
  await new Promise<void>((resolve) => server.listen(`\0${name}`, resolve));
  onTestFinished(() => void server.close());
  return name;
}

/** Of the same user as this test, and nobody waits for it: one that traces it holds nothing else up. */
async function hostProcess(): Promise<number> {
  const child = spawn('cat', { stdio: ['pipe', 'ignore', 'ignore'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  await once(child, 'spawn');
  return child.pid ?? 0;
}

/** The file that a sandbox sees as its limit of memory, as root of the host sees it. */
function hostLimitsOf({ record }: { readonly record: SandboxRecord }): string {
  const inGroup = `sallyport/${record.containerId}`;
  return limitsFile.replace(/\/memory\.[^/]+$/, (file) => `/${inGroup}${file}`);
}

/** What the kernel says to root of the host. */
async function outside(script: string): Promise<Findings> {
  return answers((await promisify(execFile)('python3', ['-c', script, 'outside'])).stdout);
}

/**
 * What the kernel says outside to arguments that mean nothing: it looked at them, so it did not refuse the call itself. Every other act
 * is done there.
 */
const looked: Findings = {
  // A device that is not there, instead of a disk of this machine.
  'mount-host': 'ENOENT',
  enter: 'EINVAL',
  clone3: 'EINVAL',
  keyctl: 'EINVAL',
  bpf: 'EINVAL',
  perf: 'EFAULT',
  'io-uring': 'EFAULT',
  'by-handle': 'EFAULT',
  listmount: 'EFAULT',
  module: 'EFAULT',
  clock: 'EFAULT',
  'kernel-log': 'EINVAL',
};

/**
 * What a kernel may lack or refuse to all, and what it says then. Where it does, nothing shows that it is the sandbox that refuses: the
 * refusal is without a control, and the test says so.
 */
const mayBeAbsent: Readonly<Record<string, readonly string[]>> = {
  // Made up: no kernel has it.
  future: ['ENOSYS'],
  listmount: ['ENOSYS'],
  module: ['ENOSYS'],
  // EPERM: by the setting kernel.io_uring_disabled.
  'io-uring': ['ENOSYS', 'EPERM'],
  keyctl: ['ENOSYS'],
  'add-key': ['ENOSYS'],
  bpf: ['ENOSYS'],
  perf: ['ENOENT', 'ENOSYS'],
  userfaultfd: ['ENOSYS'],
  vsock: ['EAFNOSUPPORT'],
  sysrq: ['ENOENT'],
  // For root without CAP_SYS_RESOURCE, as in a virtual machine of CI.
  'max-namespaces': ['EACCES'],
  // EIO: by the setting dev.tty.legacy_tiocsti, for root without CAP_SYS_ADMIN.
  'type-ahead': ['EIO'],
  // ENOSPC: by the setting user.max_user_namespaces.
  'new-user': ['EINVAL', 'ENOSPC'],
  'clone-user': ['EINVAL', 'ENOSPC'],
};

/** Each act that was refused inside must be possible outside. Says which ones this kernel refuses to all. */
function expectControls(refused: readonly string[], found: Findings): void {
  const without = refused.filter((name) => found[name] !== (looked[name] ?? 'done'));
  for (const name of without) expect(mayBeAbsent[name] ?? [], `control of ${name}`).toContain(found[name]);
  if (without.length > 0) process.stderr.write(`without a control on this kernel: ${without.join(', ')}\n`);
}

const denied: Findings = {
  remount: 'EPERM',
  'mount-host': 'EPERM',
  'mount-memory': 'EPERM',
  'mount-proc': 'EPERM',
  umount: 'EPERM',
  pivot: 'EPERM',
  chroot: 'EPERM',
  'new-user': 'EPERM',
  'new-mounts': 'EPERM',
  enter: 'EPERM',
  'clone-user': 'EPERM',
  clone3: 'ENOSYS',
  keyctl: 'EPERM',
  'add-key': 'EPERM',
  bpf: 'EPERM',
  perf: 'EPERM',
  'io-uring': 'EPERM',
  userfaultfd: 'EPERM',
  'by-handle': 'EPERM',
  'mount-api': 'EPERM',
  listmount: 'EPERM',
  module: 'EPERM',
  hostname: 'EPERM',
  clock: 'EPERM',
  'kernel-log': 'EPERM',
  personality: 'EPERM',
  future: 'ENOSYS',
  vsock: 'EAFNOSUPPORT',
};

describe.runIf(isThere)('[C4] inside a box of bubblewrap', () => {
  test('no attempt leads out', async () => {
    const { make } = await openSandboxes({ on: 'bubblewrap' });
    const box = await make();
    const script = attempts(await hostProcess(), await abstractSocket(), hostLimitsOf(box));
    const { stdout, stderr } = await runInSandbox(box, ['python3', '-c', script]);
    const found = answers(stdout.data);
    expect(stderr.data).toBe('');
    expect(found).toMatchObject({
      ...denied,
      'ptrace-outside': 'ESRCH',
      'signal-outside': 'ESRCH',
      'see-outside': 'ENOENT',
      'become-root': 'EINVAL',
      'core-pattern': 'EACCES',
      'ip-forward': 'EACCES',
      'unprivileged-ports': 'EACCES',
      'max-namespaces': 'EACCES',
      'write-usr': 'EROFS',
      'write-etc': 'EROFS',
      'write-porter': 'EACCES',
      'open-porter': 'EROFS',
      device: 'EPERM',
      terminal: 'ENXIO',
      'porter-memory': 'EACCES',
      'porter-files': 'EACCES',
      'porter-root': 'EACCES',
      packets: 'EAFNOSUPPORT',
      'host-socket': 'ECONNREFUSED',
      homes: 'sally',
      run: ' tmp',
      inherited: '[]',
      secrets: '[]',
      processes: '1',
      suid: '[]',
    });
    expect(found['type-ahead']).not.toBe('done');
    expect(found['sysrq']).not.toBe('done');
    expect(found['write-limits']).toBe(isRoot ? 'EACCES' : 'ENOENT');
    expect(found['files']).not.toMatch(/root|boot|srv|mnt|opt|media/);
    expect(found['devices']).toBe(
      'console,core,fd,full,null,ptmx,pts,random,shm,stderr,stdin,stdout,tty,urandom,zero'
        .split(',')
        .filter((name) => found['devices']?.split(',').includes(name))
        .join(','),
    );
    expect(await readdir('/usr')).not.toContain('planted');
    // An ordinary user may do too little outside for a comparison.
    const described = ['files', 'homes', 'run', 'devices', 'inherited', 'secrets', 'processes', 'suid'];
    const acts = Object.keys(found).filter((name) => !described.includes(name));
    expect(acts.length).toBeGreaterThan(40);
    if (isRoot) expectControls(acts, await outside(script));
  });

  test('[N5] a link left on the way of a mount leads nothing to the host at the next start', async () => {
    const { make, world } = await openSandboxes({ on: 'bubblewrap' });
    const folder = await mkdtemp(join(tmpdir(), 'sallyport-mounted-'));
    const outside = await mkdtemp(join(tmpdir(), 'sallyport-outside-'));
    onTestFinished(async () => {
      for (const each of [folder, outside]) await rm(each, { recursive: true, force: true });
    });
    await writeFile(join(folder, 'file'), 'of the host');
    // Open to every user of this machine: bubblewrap has the sandbox's.
    await Promise.all([chmod(folder, 0o755), chmod(outside, 0o777)]);
    const mounts = [
      { source: folder, target: '/home/sally/a/folder' },
      { source: join(folder, 'file'), target: '/home/sally/b/file' },
    ];
    // As bubblewrap sees the host while it prepares a box.
    const seen = `/oldroot${outside}`;
    for (const plant of [`mv a c; ln -s ${seen} a`, `mv b c; ln -s ${seen} b`, 'mv a c; ln -s c a']) {
      const box = await make({ spec: { mounts } });
      expect((await runInSandbox(box, ['cat', 'a/folder/file', 'b/file'])).stdout.data).toBe(
        'of the hostof the host',
      );
      // The control: a start after a stop, with what it wrote beside them.
      await runInSandbox(box, ['touch', 'a/own']);
      await box.stop(0);
      await box.start();
      const { exec, stderr } = await runInSandbox(box, ['sh', '-c', `ls a/own && ${plant}`]);
      expect({ code: exec.exit_code, stderr: stderr.data }).toEqual({ code: 0, stderr: '' });
      await box.stop(0);
      await expect(box.start(), plant).rejects.toMatchObject({ code: 'engine_conflict' });
      expect(await readdir(outside), plant).toEqual([]);
      expect((await world.engine.list(world.owner)).map(({ status }) => status)).not.toContain('running');
      await box.remove({ force: true });
    }
  });

  test('the seccomp program of the box denies by itself, without the one that porter adds', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'sallyport-keeper-'));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const script = attempts(process.pid, 'nobody');
    const { stdout } = await promisify(execFile)(keeperBinaryPath(nativeArchitecture), [
      `--folder=${folder}`,
      ...(isRoot ? ['--user=64999:64999'] : []),
      '--',
      '/usr/bin/bwrap',
      ...'--unshare-user --unshare-pid --unshare-ipc --ro-bind / / --proc /proc --dev /dev --tmpfs /tmp'.split(
        ' ',
      ),
      ...'--seccomp 5 --json-status-fd 4 --'.split(' '),
      'python3',
      '-c',
      script,
    ]);
    expect(answers(stdout)).toMatchObject(denied);
    expect(await readFile(join(folder, 'status'), 'utf8')).toMatch(/keeper-pid.*\n.*child-pid/);
  });

  when(asRoot).test('root never starts bubblewrap as root', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'sallyport-keeper-'));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const keeper = async (...options: readonly string[]) =>
      await promisify(execFile)(keeperBinaryPath(nativeArchitecture), [
        `--folder=${folder}`,
        ...options,
        '--',
        '/usr/bin/id',
        '-u',
      ]);
    for (const options of [[], ['--user=0:0'], ['--user=1000:0'], ['--user=0:1000'], ['--user=1000']]) {
      await expect(keeper(...options)).rejects.toMatchObject({ code: 125, stdout: '' });
    }
    expect((await keeper('--user=64999:64998')).stdout).toBe('64999\n');
  });
});
