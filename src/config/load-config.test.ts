import {
  chmod,
  mkdir,
  mkdtemp,
  readFile,
  realpath,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readConfigEnvironment } from './config.ts';
import { type LoadOptions, loadConfig } from './load-config.ts';
import type { ApprovalRequest } from './project-approval.ts';

let home = '';
let project = '';
beforeEach(async () => {
  home = await realpath(await mkdtemp(join(tmpdir(), 'sallyport-config-')));
  project = join(home, 'work', 'app');
  await mkdir(join(project, 'src', 'deep'), { recursive: true });
  await mkdir(join(home, '.config', 'sallyport'), { recursive: true });
});
afterEach(async () => await rm(home, { recursive: true }));

const load = (more: Partial<LoadOptions> = {}, env: Record<string, string> = {}) =>
  loadConfig({
    cwd: project,
    environment: readConfigEnvironment({ HOME: home, ...env }),
    flags: {},
    now: () => new Date(0),
    ...more,
  });
const write = (text: string, folder = project) => writeFile(join(folder, 'sallyport.yaml'), text);
const makeRepository = (folder: string) => mkdir(join(folder, '.git', 'objects'), { recursive: true });

describe('finding the project file', () => {
  it('looks in the folder itself, and in parents only up to the root of the repository', async () => {
    await write('labels: {a: b}\n');
    const cwd = join(project, 'src', 'deep');
    expect((await load()).projectFile).toBe(join(project, 'sallyport.yaml'));
    expect((await load({ cwd })).projectFile).toBeUndefined();
    await makeRepository(project);
    expect((await load({ cwd })).projectFile).toBe(join(project, 'sallyport.yaml'));
    await makeRepository(cwd);
    expect((await load({ cwd })).projectFile).toBeUndefined();
  });

  it('does not search a home from below, even if that is a repository', async () => {
    await makeRepository(home);
    await write('labels: {a: b}\n', home);
    expect((await load()).projectFile).toBeUndefined();
    expect((await load({ cwd: home })).projectFile).toBe(join(home, 'sallyport.yaml'));
  });

  it('does not overlook one with another ending', async () => {
    await writeFile(join(project, 'sallyport.yml'), 'image: x\n');
    await expect(load()).rejects.toThrow('its name must be sallyport.yaml');
  });

  it('is not held up by a link to a device', async () => {
    await symlink('/dev/zero', join(project, 'sallyport.yaml'));
    await expect(load()).rejects.toMatchObject({ code: 'config_invalid' });
  });
});

describe('what a sandbox puts into its workspace', () => {
  it('is no project file and no repository', async () => {
    await write('limits: { cpus: 1 }');
    const cwd = join(project, 'src');
    await mkdir(join(cwd, 'sallyport.yaml'));
    await mkdir(join(cwd, '.git'));
    expect((await load({ cwd })).projectFile).toBeUndefined();
    // The control: the folder above is a repository, so both were passed over on the way to it.
    await makeRepository(project);
    expect((await load({ cwd })).projectFile).toBe(join(project, 'sallyport.yaml'));
    await mkdir(join(cwd, 'sallyport.yaml', 'filled'));
    await expect(load({ cwd })).rejects.toThrow('it is no regular file');
  });
});

describe('paths', () => {
  it('are relative to the file that says them, flags to the working folder', async () => {
    await makeRepository(project);
    await write(
      'workspace: {path: .}\nmounts: [{source: ../data, target: /data}, {source: ~/x, target: /x}]\n',
    );
    const cwd = join(project, 'src');
    const flags = { mounts: [{ source: 'deep', target: '/deep' }] };
    const { input } = await load({ cwd, flags, approve: true });
    expect(input.workspace).toEqual({ path: project });
    expect(input.mounts?.map(({ source }) => source)).toEqual([
      join(home, 'work', 'data'),
      join(home, 'x'),
      join(project, 'src', 'deep'),
    ]);
  });
});

describe('approval of a project file', () => {
  const approvals = () => readFile(join(home, '.local/state/sallyport/approvals.json'), 'utf8');

  it('is not needed for what widens nothing', async () => {
    await write(
      'profile: strict\nenvs: {A: "1"}\nlabels: {a: b}\nlimits: {memory: 1g, pids: 512}\nworkdir: /x\nidle_ttl: 5m\nmounts: []\n',
    );
    expect((await load()).spec.profile).toBe('strict');
    await expect(approvals()).rejects.toThrow('ENOENT');
  });

  it.each([
    ['image: x', 'run the image x'],
    ['images: {default: x}', 'run the image x where nothing else names one (images.default)'],
    ['images: {strict: x}', 'run the image x where nothing else names one (images.strict)'],
    ['name: other', 'name: other'],
    ['workspace: {path: .}', 'read and change the folder'],
    [
      'workspace: {path: ., dangerously_unprotected: [all]}',
      'change what this machine may execute by itself: all',
    ],
    ['workspace: {path: /srv, mode: readonly}', 'read the folder /srv, at /workspace'],
    ['mounts: [{source: /srv, target: /x, writable: true}]', 'read and change /srv, at /x'],
    ['copies: [{source: /srv, target: /x}]', 'get a copy of /srv, at /x'],
    ['builtin_tools: [git]', 'use the folders of git in your home'],
    [
      'builtin_tools: [{name: uv, mode: shared}]',
      'use the folders of uv in your home, and change what this machine executes from them (mode shared)',
    ],
    ['limits: {memory: 5g}', 'use more than usual: memory 5.0 GiB'],
    ['limits: {disk: 21g}', 'use more than usual: disk 21 GiB'],
    ['limits: {pids: 513}', 'use more than usual: pids 513'],
    ['profile: standard', 'profile: standard'],
    ['runtime: runc', 'runtime: runc'],
    ['runtime: strongest', 'runtime: strongest'],
    ['user: "5:5"', 'user: 5:5'],
    ['command: [sh, -c, "a b"]', 'start by itself: "sh" "-c" "a b"'],
  ])('is needed for %s, and says what is asked for', async (text, line) => {
    await write(`${text}\n`);
    await expect(load()).rejects.toMatchObject({
      code: 'project_not_approved',
      kind: 'permission',
      message: expect.stringContaining(line),
      advice: expect.stringContaining('SALLYPORT_APPROVE_PROJECT=1'),
    });
  });

  it('[O1][O7] is needed again when images.default of the project changes', async () => {
    const asked: ApprovalRequest[] = [];
    const answers = { ask: async (request: ApprovalRequest) => asked.push(request) > 0 };
    for (const image of ['a', 'a', 'b']) {
      await write(`images: {default: ${image}}\n`);
      expect((await load(answers)).spec.images).toEqual({ default: image });
    }
    expect(asked.map(({ lines }) => lines.join())).toEqual([
      expect.stringContaining('run the image a '),
      expect.stringContaining('run the image b '),
    ]);
  });

  it('[A4] is needed again when a tool becomes shared, and not when its mode is only spelled out', async () => {
    const asked: ApprovalRequest[] = [];
    const answers = { ask: async (request: ApprovalRequest) => asked.push(request) > 0 };
    await write('builtin_tools: [uv]\n');
    await load(answers);
    await write('builtin_tools: [{name: uv, mode: protected}]\n');
    await load(answers);
    expect(asked).toHaveLength(1);
    await write('builtin_tools: [{name: uv, mode: shared}]\n');
    await load(answers);
    expect(asked).toHaveLength(2);
    expect(asked[1]?.fingerprint).not.toBe(asked[0]?.fingerprint);
  });

  it('says everything that a service gets, in full length', async () => {
    const long = 'x'.repeat(2000);
    await write(`required_services:
  - name: db
    image: postgres
    command: [postgres, -c, "shared_preload_libraries=${long}"]
    envs: {POSTGRES_INITDB_ARGS: "--set a=b"}
    limits: {memory: 8g, pids: 9}
    healthcheck: {test: "curl evil.example", interval: 50ms, timeout: 1h, retries: 9, start_period: 2m}
    post_start_on_primary: [[sh, -c, "id > /workspace/x"]]
`);
    const asked: ApprovalRequest[] = [];
    await load({ ask: async (request) => asked.push(request) > 0 });
    expect(asked[0]?.lines).toEqual([
      `run the service db of the image postgres "postgres" "-c" "shared_preload_libraries=${long}"`,
      'give the service db POSTGRES_INITDB_ARGS="--set a=b"',
      'limit the service db to memory 8.0 GiB',
      'limit the service db to pids 9',
      'check the service db every 50ms by "curl evil.example", timeout 1h, retries 9, start_period 2m',
      'run in the sandbox when db is healthy: "sh" "-c" "id > /workspace/x"',
    ]);
  });

  it.each([
    ['--approve', { approve: true }, {}],
    ['the variable', {}, { SALLYPORT_APPROVE_PROJECT: '1' }],
    ['a person', { ask: async () => true }, {}],
  ])('is given by %s once, and remembered for its owner alone', async (_, more, env) => {
    await write('image: x\n');
    await load(more, env);
    expect((await load()).spec.image).toBe('x');
    const { mode } = await stat(join(home, '.local/state/sallyport/approvals.json'));
    expect(mode & 0o777).toBe(0o600);
    expect(JSON.parse(await approvals())).toMatchObject({ version: 1, approvals: [{ folder: project }] });
  });

  it('is refused when the person says no, and nothing is remembered', async () => {
    await write('image: x\n');
    await expect(load({ ask: async () => false })).rejects.toMatchObject({ code: 'project_not_approved' });
    await expect(approvals()).rejects.toThrow('ENOENT');
  });

  it('holds while other fields change, and no longer when one that widens does', async () => {
    await write('image: x\nenvs: {A: "1"}\n');
    await load({ approve: true });
    await write('# another look\nenvs: {B: "2"}\nimage: x\nidle_ttl: 1h\n');
    await load();
    await write('image: y\nenvs: {A: "1"}\n');
    await expect(load()).rejects.toMatchObject({ code: 'project_not_approved' });
    await load({ approve: true });
    await write('image: x\n');
    await load();
  });

  it('is for this folder, not for a copy of the file', async () => {
    await write('image: x\n');
    await load({ approve: true });
    const other = join(home, 'work', 'other');
    await mkdir(other);
    await write('image: x\n', other);
    await expect(load({ cwd: other })).rejects.toMatchObject({ code: 'project_not_approved' });
    await symlink(project, join(home, 'link'));
    await load({ cwd: join(home, 'link') });
  });

  it('[N5] is for the folders that its paths lead to: one that is swapped for a link asks again', async () => {
    const other = join(home, 'other');
    for (const folder of [join(project, 'data/seed'), join(other, 'seed')])
      await mkdir(folder, { recursive: true });
    await write(
      'workspace: {path: ./src}\nmounts: [{source: ./data/seed, target: /seed, writable: true}]\ncopies: [{source: ./data/seed, target: /copy}]\n',
    );
    const { spec } = await load({ approve: true });
    expect(spec).toEqual((await load()).spec);
    expect(spec.mounts?.[0]?.source).toBe(join(project, 'data/seed'));
    // As a sandbox does that has the project live.
    await rename(join(project, 'data'), join(project, 'aside'));
    await symlink(other, join(project, 'data'));
    const lines = [
      'read and change the folder',
      `read and change ${other}/seed`,
      `get a copy of ${other}/seed`,
    ];
    await expect(load()).rejects.toMatchObject({ code: 'project_not_approved' });
    for (const line of lines) await expect(load()).rejects.toThrow(line);
    expect((await load({ approve: true })).spec.mounts?.[0]?.source).toBe(join(other, 'seed'));
    await rm(join(project, 'data'));
    await rename(join(project, 'aside'), join(project, 'data'));
    expect((await load()).spec).toEqual(spec);
    await rename(join(project, 'src'), join(project, 'old'));
    await symlink(other, join(project, 'src'));
    await expect(load()).rejects.toThrow(`read and change the folder ${other},`);
  });

  it('shows nothing that a terminal would obey', async () => {
    await write(
      'command: ["\\e[2Jx", "a\\u202Eb"]\nmounts: [{source: "/srv/\\e]0;x\\a\\nfake", target: /x}]\n',
    );
    let asked: ApprovalRequest | undefined;
    await expect(
      load({
        ask: async (request) => {
          asked = request;
          return false;
        },
      }),
    ).rejects.toThrow();
    expect(asked?.lines).toHaveLength(2);
    expect(asked?.lines.join('')).not.toMatch(/[\p{C}]/u);
  });

  it('is not asked for what is refused anyway', async () => {
    await write('image: x\nlimits: {memory: 5g}\n');
    await writeFile(join(home, '.config/sallyport/config.yaml'), 'limits: {memory: 4g}\n');
    const ask = async (): Promise<boolean> => {
      throw new Error('asked');
    };
    await expect(load({ ask })).rejects.toMatchObject({ code: 'refused_by_policy' });
  });

  it('is not given by a list that cannot be read, which is left as it is', async () => {
    await write('image: x\n');
    const state = join(home, '.local/state/sallyport');
    await mkdir(state, { recursive: true });
    await writeFile(join(state, 'approvals.json'), '{"version":1,');
    await expect(load({ approve: true })).rejects.toMatchObject({ code: 'config_invalid' });
    expect(await approvals()).toBe('{"version":1,');
  });
});

describe("the user's file", () => {
  it('gives defaults without being asked about', async () => {
    const file = join(home, '.config/sallyport/config.yaml');
    await writeFile(file, 'image: mine\nmounts: [{source: ~/data, target: /data}]\n');
    await chmod(file, 0o600);
    const loaded = await load();
    expect(loaded).toMatchObject({
      userFile: file,
      spec: { image: 'mine', mounts: [{ source: join(home, 'data') }] },
    });
  });
});
