import { describe, expect, it } from 'vitest';
import { forbiddenSource, type HostPlaces, requireAllowedSource } from './forbidden-sources.ts';

const linux: HostPlaces = {
  platform: 'linux',
  homes: ['/home/me', '/var/lib/jenkins', '/export/home/far'],
  stateDirs: ['/home/me/.local/state/sallyport', '/srv/sally-state'],
  engineSockets: ['/srv/engines/one.socket', '/home/me/own/engine/docker.sock'],
  programs: [],
};
const mac: HostPlaces = {
  platform: 'darwin',
  homes: ['/Users/me'],
  stateDirs: ['/Users/me/.local/state/sallyport'],
  engineSockets: ['/Users/me/.colima/default/docker.sock'],
  programs: [],
};

const rule = (path: string, places: HostPlaces, writable = false): string | undefined =>
  forbiddenSource(path, writable, places)?.rule;

describe('[O4] sources on Linux', () => {
  it.each([
    ['/', 'root'],
    ['/etc', 'system'],
    ['/etc/ssl/certs', 'system'],
    ['/proc', 'system'],
    ['/proc/1/root', 'system'],
    ['/sys', 'system'],
    ['/sys/fs/cgroup', 'system'],
    ['/boot', 'system'],
    ['/dev', 'system'],
    ['/dev/shm/mine', 'system'],
    ['/var', 'system'],
    ['/var/log', 'system'],
    ['/var/tmp/x', 'system'],
    ['/var/lib', 'system'],
    ['/var/lib/docker', 'system'],
    ['/var/lib/docker/volumes/x/_data', 'system'],
    ['/var/lib/sallyport/engine', 'system'],
    ['/run', 'system'],
    ['/run/user/1000', 'system'],
    ['/home', 'system'],
    ['/root', 'home'],
    ['/home/me', 'home'],
    ['/home/somebody', 'home'],
    ['/var/lib/jenkins', 'home'],
    ['/export/home', 'home'],
    ['/export', 'home'],
    ['/run/docker.sock', 'engine-socket'],
    ['/var/run/docker.sock', 'engine-socket'],
    ['/run/sallyport/engine/docker.sock', 'engine-socket'],
    ['/run/containerd/containerd.sock', 'engine-socket'],
    ['/run/user/1000/podman/podman.sock', 'engine-socket'],
    ['/tmp/docker.sock', 'engine-socket'],
    ['/mnt/x/docker.raw.sock', 'engine-socket'],
    ['/opt/crio.sock', 'engine-socket'],
    ['/srv/engines/one.socket', 'engine-socket'],
    ['/srv/engines', 'engine-socket'],
    ['/home/me/own', 'engine-socket'],
    ['/srv/sally-state', 'state'],
    ['/srv/sally-state/sandboxes', 'state'],
    ['/srv/sally-state/guard-copies', 'state'],
    ['/srv/sally-state/guard-copies/1-a-b', 'state'],
    ['/srv/sally-state/guard-copies/1-a-b/other', 'state'],
    ['/srv/sally-state/sandboxes/1-a-b/folder', 'state'],
    ['/srv', 'state'],
    ['/home/me/.local/state/sallyport/x', 'state'],
    ['/home/me/.local/state', 'state'],
    ['/home/me/.ssh', 'credentials'],
    ['/home/me/.ssh/id_ed25519', 'credentials'],
    ['/root/.ssh', 'credentials'],
    ['/home/somebody/.aws/credentials', 'credentials'],
    ['/var/lib/jenkins/.ssh', 'credentials'],
    ['/export/home/far/.kube/config', 'credentials'],
    ['/home/me/.gnupg', 'credentials'],
    ['/home/me/.docker/config.json', 'credentials'],
    ['/home/me/.config', 'credentials'],
    ['/home/me/.config/gcloud', 'credentials'],
    ['/home/me/.config/sallyport', 'credentials'],
    ['/home/me/.config/google-chrome/Default', 'credentials'],
    ['/home/me/.mozilla/firefox', 'credentials'],
    ['/home/me/.local/share', 'credentials'],
    ['/home/me/.local/share/keyrings', 'credentials'],
    ['/home/me/.netrc', 'credentials'],
    ['/home/me/.npmrc', 'credentials'],
    ['/home/me/.git-credentials', 'credentials'],
    ['/home/me/.cargo', 'credentials'],
    ['/home/me/.claude', 'credentials'],
    ['/tmp', 'shared'],
    ['/tmp/ssh-abc/agent.1', 'shared'],
    ['/tmp/.X11-unix', 'shared'],
  ])('%s is refused: %s', (path, expected) => {
    expect(rule(path, linux)).toBe(expected);
  });

  it.each([
    '/home/me/project',
    '/home/me/work/a/b',
    '/home/somebody/project',
    '/root/project',
    '/var/lib/jenkins/workspace/job',
    '/export/home/far/project',
    '/export/data',
    '/tmp/mine',
    '/opt/tools',
    '/srv/other',
    '/mnt/disk/project',
    '/etcetera',
    '/variable',
    '/homestead',
    '/home/me/.sshd-project',
    '/home/me/docs/.ssh',
    '/home/me/.config/nvim',
    '/home/me/.cargo/registry',
    '/home/me/.local/share/fonts',
    '/home/me/.local/state/sallyport-other',
    '/home/me/docker.sock.txt',
    '/usr/share/doc',
    '/Users/me',
  ])('%s may be given', (path) => {
    expect(rule(path, linux)).toBeUndefined();
  });

  it.each([
    ['/home/me/.bashrc', 'startup'],
    ['/home/me/bin/tool', 'startup'],
    ['/home/me/.local/bin', 'startup'],
    ['/root/.profile', 'startup'],
    ['/home/me/.gitconfig', 'startup'],
    ['/home/me/.local/share/uv/tools', 'startup'],
    ['/home/me/.cache', 'startup'],
    ['/home/me/.npm', 'startup'],
    ['/home/me/.npm/_npx/one', 'startup'],
    ['/home/me/.claude/hooks', 'startup'],
    ['/home/me/.claude/settings.json', 'startup'],
    ['/home/me/.agents', 'startup'],
    ['/usr', 'programs'],
    ['/usr/local/bin', 'programs'],
    ['/lib', 'programs'],
    ['/srv/sally-state/guard-copies/1-a-b/folder', 'state'],
  ])('%s may be read but not written: %s', (path, expected) => {
    expect(rule(path, linux)).toBeUndefined();
    expect(rule(path, linux, true)).toBe(expected);
  });

  it.each(['/home/me/.codex/worktrees/a/project', '/home/me/.claude/projects/p', '/home/me/.npm/_logs'])(
    '%s in the folder of a tool may be written to: no tool executes from it',
    (path) => {
      expect(rule(path, linux, true)).toBeUndefined();
    },
  );

  it.each(['/', '/var', '/home', '/dev', '/proc', '/var/run', '/etc'])(
    'the home %s of a service user opens nothing',
    (home) => {
      const places = { ...linux, homes: [home] };
      for (const path of ['/etc/shadow', '/var/log', '/proc/1', '/dev/sda', '/run/x', '/var/run/x']) {
        expect(rule(path, places)).toBe('system');
      }
    },
  );
});

describe('[O4] sources on macOS', () => {
  it.each([
    ['/Users', 'system'],
    ['/Users/me', 'home'],
    ['/Users/Shared', 'home'],
    ['/private', 'system'],
    ['/private/var', 'system'],
    ['/private/var/db/x', 'system'],
    ['/private/etc', 'system'],
    ['/private/var/folders', 'system'],
    ['/private/tmp', 'shared'],
    ['/System/Library', 'system'],
    ['/Library/Keychains', 'system'],
    ['/private/var/run/docker.sock', 'engine-socket'],
    ['/Users/me/.colima', 'credentials'],
    ['/Users/me/.SSH', 'credentials'],
    ['/users/me', 'home'],
    ['/Users/me/Library', 'credentials'],
    ['/Users/me/Library/Keychains/login.keychain-db', 'credentials'],
    ['/Users/me/Library/Application Support/Firefox', 'credentials'],
    ['/Users/me/.orbstack/run', 'credentials'],
  ])('%s is refused: %s', (path, expected) => {
    expect(rule(path, mac)).toBe(expected);
  });

  it.each([
    '/Users/me/project',
    '/Users/Shared/project',
    '/private/tmp/mine',
    '/private/var/folders/ab/cd/T/build-1',
    '/Volumes/Disk/project',
  ])('%s may be given', (path) => {
    expect(rule(path, mac)).toBeUndefined();
  });
});

describe('the refusal of a source', () => {
  it('names the field, the path as it was given and as it is, the rule and the way out', () => {
    const source = { given: '/home/me/project/innocent', real: '/home/me/.ssh', writable: false };
    expect(() => requireAllowedSource('mounts.2.source', source, linux)).toThrow(
      expect.objectContaining({
        code: 'refused_by_policy',
        message: expect.stringContaining(
          'mounts.2.source: /home/me/project/innocent (which is /home/me/.ssh)',
        ),
        details: {
          field: 'mounts.2.source',
          path: '/home/me/.ssh',
          rule: 'credentials',
          place: '/home/me/.ssh',
        },
        advice: expect.stringContaining('Leave it out'),
      }),
    );
  });
});
