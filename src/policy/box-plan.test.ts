import { describe, expect, it } from 'vitest';
import { parseSpec } from '../protocol/parse-spec.ts';
import { type PathFacts, type PlanFacts, planBox, plannedBox } from './box-plan.ts';

const folder = (real: string, uid = 1000, gid = 1000): PathFacts => ({
  kind: 'directory',
  real,
  realKind: 'directory',
  uid,
  gid,
});

const facts: PlanFacts = {
  host: { uid: 1000, gid: 1001, platform: 'linux' },
  engine: { name: 'docker', rootless: false, defaultRuntime: 'runc' },
  freeUid: 64007,
  places: { platform: 'linux', homes: ['/home/me'], stateDirs: [], engineSockets: [], programs: [] },
  mounts: [],
};
/** An empty folder, so that nothing but stubs protects it. */
const withWorkspace: PlanFacts = {
  ...facts,
  workspace: folder('/home/me/project'),
  inWorkspace: { found: {}, named: [] },
};
const asRoot: PlanFacts = { ...withWorkspace, host: { uid: 0, gid: 0, platform: 'linux' } };
const live = { workspace: { path: '/home/me/project' } };

const plan = (spec: unknown, given: PlanFacts = facts) => planBox(parseSpec(spec), given);
const refused = (field: string, advice = '') =>
  expect.objectContaining({
    code: 'refused_by_policy',
    details: expect.objectContaining({ field }),
    advice: expect.stringContaining(advice),
  });
const codes = (spec: unknown, given: PlanFacts) => plan(spec, given).notes.map(({ code }) => code);

describe('planBox', () => {
  it('[G4][G6] gives the defaults, a uid of its own, and nothing of the host', () => {
    expect(plan({})).toMatchObject({
      profile: 'standard',
      limits: { memoryBytes: 4 * 2 ** 30, cpus: 2, pids: 512, nofile: 65536 },
      user: { uid: 64007, gid: 64007, home: '/home/sally' },
      usesPool: true,
      workdir: '/home/sally',
      mounts: [],
      readOnlyRoot: false,
      labels: {},
      notes: [],
    });
  });

  it('[O8][G4] takes the limits of the spec', () => {
    const limits = { memory: '512m', cpus: 0.5, pids: 64, nofile: 1024, disk: '40g' };
    expect(plan({ limits }).limits).toEqual({
      diskBytes: 40 * 2 ** 30,
      memoryBytes: 512 * 2 ** 20,
      cpus: 0.5,
      pids: 64,
      nofile: 1024,
      shmBytes: 64 * 2 ** 20,
    });
  });

  it('[G6][A11] runs as the host user where a folder of the host is writable', () => {
    const planned = plan({ ...live, labels: { a: 'b' } }, withWorkspace);
    expect(planned.user).toEqual({ uid: 1000, gid: 1001, home: '/home/sally' });
    expect(planned.mounts[0]).toEqual({ source: '/home/me/project', target: '/workspace', writable: true });
    expect(planned.workdir).toBe('/workspace');
    const mounted = plan(
      { mounts: [{ source: '/tmp/x', target: '/x', writable: true }] },
      { ...facts, mounts: [folder('/tmp/x')] },
    );
    expect(mounted.user).toMatchObject({ uid: 1000, gid: 1001 });
  });

  it('[O8] mounts a read-only workspace as a user of its own, and says what that means', () => {
    const spec = {
      workspace: { path: '/home/me/project', mode: 'readonly', target: '/src/' },
      workdir: '/src/a',
    };
    expect(plan(spec, withWorkspace)).toMatchObject({
      user: { uid: 64007 },
      mounts: [{ source: '/home/me/project', target: '/src', writable: false }],
      workdir: '/src/a',
      notes: [{ code: 'readonly_as_stranger' }],
    });
  });

  it('copies a workspace in copy mode and mounts nothing', () => {
    const planned = plan({ workspace: { path: 'x', mode: 'copy' } }, withWorkspace);
    expect(planned).toMatchObject({
      mounts: [],
      copies: [
        {
          source: '/home/me/project',
          target: '/workspace',
          kind: 'directory',
          excludes: { patterns: [], from: [] },
          isWorkspace: true,
        },
      ],
      usesPool: true,
    });
  });

  it('[A11] is never root', () => {
    for (const user of ['0:0', '0:1000', '1000:0', '00:5']) {
      expect(() => plan({ user })).toThrow(refused('user', '1000:1000'));
    }
    expect(() => plan({ user: '4294967295:1' })).toThrow(refused('user'));
    expect(plan({ user: '1234:5678' })).toMatchObject({ user: { uid: 1234, gid: 5678 }, usesPool: false });
    expect(codes({ ...live, user: '1234:5678' }, withWorkspace)).toEqual(['user_not_owner']);
    const groupRoot = { ...withWorkspace, host: { uid: 1000, gid: 0, platform: 'linux' } };
    expect(plan(live, groupRoot).user).toMatchObject({ uid: 1000, gid: 1000 });
  });

  it('[A11] for root takes the owner of the folder, or refuses and names every way out', () => {
    expect(plan(live, asRoot)).toMatchObject({
      user: { uid: 1000, gid: 1000 },
      notes: [{ code: 'user_owner' }],
    });
    for (const [uid, gid] of [
      [0, 0],
      [0, 5],
      [5, 0],
    ] as const) {
      const roots = { ...asRoot, workspace: folder('/root/project', uid, gid) };
      for (const way of ['--workspace-mode copy', '--user uid:gid', 'chown', 'ordinary user']) {
        expect(() => plan(live, roots)).toThrow(refused('workspace.path', way));
      }
      expect(plan({ ...live, user: '7:7' }, roots).user).toMatchObject({ uid: 7, gid: 7 });
      expect(plan({ workspace: { path: 'x', mode: 'copy' } }, roots).user.uid).toBe(64007);
    }
    const two = { ...asRoot, mounts: [folder('/tmp/x', 1001, 1001)] };
    const spec = { ...live, mounts: [{ source: '/tmp/x', target: '/x', writable: true }] };
    expect(() => plan(spec, two)).toThrow(refused('mounts.0.source'));
  });

  it('[G6] on rootless Podman keeps the id, on other rootless engines allows only what is not writable', () => {
    const podman = { ...withWorkspace, engine: { name: 'podman', rootless: true, defaultRuntime: 'crun' } };
    expect(plan(live, podman)).toMatchObject({ userMapping: 'keep-id', user: { uid: 1000, gid: 1001 } });
    expect(() => plan({ ...live, user: '5:5' }, podman)).toThrow(refused('user'));
    const docker = { ...withWorkspace, engine: { name: 'docker', rootless: true, defaultRuntime: 'runc' } };
    expect(() => plan(live, docker)).toThrow(refused('workspace.path', '--workspace-mode copy'));
    for (const mode of ['copy', 'readonly']) {
      expect(plan({ workspace: { path: 'x', mode } }, docker).user.uid).toBe(64007);
    }
    expect(plan({}, docker).userMapping).toBeUndefined();
  });

  it('[G6] on macOS runs as a user of its own, and says so', () => {
    const mac = { ...withWorkspace, host: { uid: 501, gid: 20, platform: 'darwin' } };
    expect(plan(live, mac)).toMatchObject({ user: { uid: 64007 }, notes: [{ code: 'user_shared_folder' }] });
  });

  it("[N5] never runs as the user of porter's relay, whoever names it", () => {
    const message = "the user of porter's relay";
    expect(() => plan({ user: '64256:5' })).toThrow(refused('user', '--user'));
    expect(() => plan({ user: '64256:5' })).toThrow(message);
    const itsOwn = { ...withWorkspace, host: { ...facts.host, uid: 64256 } };
    expect(() => plan(live, itsOwn)).toThrow(message);
    const workspace = folder('/home/me/project', 64256, 5);
    expect(() => plan(live, { ...asRoot, workspace })).toThrow(message);
    // Its group is no harm, and neither is the next uid.
    expect(plan({ user: '64257:64256' }).user).toMatchObject({ uid: 64257, gid: 64256 });
  });

  it('[N22] has a lender with a uid of the pool where its own is not', () => {
    expect(plan(live, withWorkspace)).toMatchObject({
      user: { uid: 1000 },
      lender: { uid: 64007, gid: 64007 },
    });
    expect(plan({ user: '7:7' }).lender).toEqual({ uid: 64007, gid: 64007 });
    expect(plan({}).lender).toBeUndefined();
    expect(plan({ profile: 'strict' }).lender).toBeUndefined();
  });

  it('takes no uid that is not of the pool', () => {
    expect(() => plan({}, { ...facts, freeUid: 1000 })).toThrow(RangeError);
    expect(() => plan({}, { ...facts, freeUid: 64256 })).toThrow(RangeError);
    expect(plan({}, { ...facts, freeUid: 64255 }).user.uid).toBe(64255);
  });
});

describe('planBox, sources and targets', () => {
  it.each([
    ['missing', 'there is no'],
    ['symlink', 'symbolic link'],
    ['other', 'neither a file nor a folder'],
  ] as const)('[A3] refuses a mount that is %s', (kind, words) => {
    const given = { ...facts, mounts: [{ ...folder('/tmp/x'), kind }] };
    expect(() => plan({ mounts: [{ source: '/tmp/x', target: '/x' }] }, given)).toThrow(words);
  });

  it("[N5] refuses a mount and a copy with a link on the way that is not root's", () => {
    const at = [{ ...folder('/srv/x'), link: '/home/me/l' }];
    const spec = [{ source: '/home/me/l/x', target: '/x' }];
    const words = '/home/me/l is a symbolic link on the way to /home/me/l/x';
    expect(() => plan({ mounts: spec }, { ...facts, mounts: at })).toThrow(words);
    expect(() => plan({ copies: spec }, { ...facts, copies: at })).toThrow(words);
    expect(plan({ mounts: spec }, { ...facts, mounts: [folder('/srv/x')] }).mounts[0]?.source).toBe('/srv/x');
  });

  it('refuses a workspace that is no folder or not there, and follows one that is a link', () => {
    const at = (more: Partial<PathFacts>) => ({
      ...withWorkspace,
      workspace: { ...folder('/home/me/project'), ...more },
    });
    expect(() => plan(live, at({ kind: 'file', realKind: 'file' }))).toThrow(
      refused('workspace.path', 'mounts'),
    );
    expect(() => plan(live, at({ kind: 'missing', realKind: 'missing' }))).toThrow(refused('workspace.path'));
    expect(plan(live, at({ kind: 'symlink' })).mounts[0]?.source).toBe('/home/me/project');
  });

  it.each(['live', 'readonly', 'copy'])('[O4] refuses a forbidden workspace in mode %s', (mode) => {
    const given = { ...facts, workspace: folder('/home/me/.ssh') };
    expect(() => plan({ workspace: { path: '/home/me/innocent', mode } }, given)).toThrow(
      refused('workspace.path'),
    );
  });

  it('[A3] refuses targets that conflict, also with the workspace', () => {
    const given = { ...withWorkspace, mounts: [folder('/tmp/x')] };
    const spec = { ...live, mounts: [{ source: '/tmp/x', target: '/workspace/x' }] };
    expect(() => plan(spec, given)).toThrow(refused('mounts.0.target'));
  });
});

describe('planBox, strict', () => {
  const strict = { profile: 'strict' };

  it('[C2] is the table, to the letter', () => {
    expect(plan(strict)).toMatchObject({
      limits: { memoryBytes: 256 * 2 ** 20, cpus: 0.5, pids: 100 },
      user: { uid: 65534, gid: 65534, home: '/tmp' },
      usesPool: false,
      workdir: '/tmp',
      tmpfs: [{ target: '/tmp', sizeBytes: 64 * 2 ** 20, exec: false }],
      readOnlyRoot: true,
      labels: { 'dev.sallyport.sandbox': 'ephemeral' },
    });
  });

  it('[C2] allows a workspace and mounts to be read', () => {
    const spec = {
      ...strict,
      workspace: { path: 'x', mode: 'readonly' },
      mounts: [{ source: '/tmp/x', target: '/x' }],
    };
    const planned = plan(spec, { ...asRoot, mounts: [folder('/tmp/x')] });
    expect(planned.mounts.map(({ writable }) => writable)).toEqual([false, false]);
    expect(planned.user.uid).toBe(65534);
  });

  it.each([
    ['workspace.mode', { workspace: { path: 'x', mode: 'live' } }],
    ['workspace.mode', { workspace: { path: 'x', mode: 'copy' } }],
    ['mounts.0.writable', { mounts: [{ source: '/tmp/x', target: '/x', writable: true }] }],
    ['user', { user: '1000:1000' }],
    ['limits.memory', { limits: { memory: '257m' } }],
    ['limits.cpus', { limits: { cpus: 1 } }],
    ['limits.pids', { limits: { pids: 101 } }],
    ['limits.nofile', { limits: { nofile: 65537 } }],
  ])('[C2] refuses %s', (field, more) => {
    const given = { ...withWorkspace, mounts: [folder('/tmp/x')] };
    expect(() => plan({ ...strict, ...more }, given)).toThrow(refused(field, ''));
  });
});

describe('plannedBox', () => {
  const identity = {
    name: 'c',
    image: 'i',
    porterVolume: 'v',
    labels: { 'dev.sallyport.owned': 'true', a: 'ours' },
    endsWithHost: false,
  };

  it('[O2] is the whole request, with our labels over those of the spec and no variable in it', () => {
    const spec = { ...live, envs: { TOKEN: 'secret' }, labels: { a: 'theirs', b: 'c' }, runtime: 'runsc' };
    const box = plannedBox(plan(spec, withWorkspace), identity);
    expect(box).toMatchObject({
      name: 'c',
      image: 'i',
      porterVolume: 'v',
      endsWithHost: false,
      runtime: 'runsc',
      user: { uid: 1000, gid: 1001 },
      env: {},
      workingDir: '/workspace',
      labels: { a: 'ours', b: 'c', 'dev.sallyport.owned': 'true' },
    });
    expect(JSON.stringify(box)).not.toContain('secret');
  });

  it('asks the engine to keep the id only where the plan says so', () => {
    const podman = { ...withWorkspace, engine: { name: 'podman', rootless: true, defaultRuntime: 'crun' } };
    expect(plannedBox(plan(live, podman), identity).userMapping).toBe('keep-id');
    expect(plannedBox(plan(live, withWorkspace), identity)).not.toHaveProperty('userMapping');
  });
});
