/** What only bubblewrap does or does not do: refusals, its processes on the host, an ordinary user, and how it is chosen. */

import { execFile, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, chown, cp, mkdir, mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, onTestFinished, test } from 'vitest';
import { packageInfo } from '../../src/lib/package-root.ts';
import { createBody } from '../../src/protocol/requests.ts';
import type { SpecInput } from '../../src/protocol/spec.ts';
import { Sandbox } from '../../src/sdk/sandbox.ts';
import { newFolder, sally, startSally } from '../support/cli.ts';
import { testDaemon } from '../support/daemon.ts';
import { commandExists, isRoot, requirement } from '../support/requires.ts';
import { openSandboxes, runInSandbox, startInSandbox } from '../support/sandboxes.ts';
import { asRoot, when } from '../support/selection.ts';
import { until } from '../support/until.ts';

const isThere = requirement('bubblewrap', commandExists('bwrap'));

/** Of this machine that carry the box's name: bubblewrap and the first process of the box. */
async function processesOf(
  id: string,
): Promise<readonly { readonly pid: number; readonly program: string }[]> {
  const found = [];
  for (const name of await readdir('/proc')) {
    const words = (await readFile(`/proc/${name}/cmdline`, 'utf8').catch(() => '')).split('\0');
    if (words.includes(`--name=${id}`)) found.push({ pid: Number(name), program: words[0] ?? '' });
  }
  return found;
}

/** Nothing tells of the end of a process that is no child: so it is asked for, as often as it takes. */
async function untilNone(id: string): Promise<void> {
  await until(async () => (await processesOf(id)).length === 0);
}

async function cgroupsOf(id: string): Promise<readonly string[]> {
  const names = ['memory', 'pids', 'cpu', 'freezer', ''].map((name) =>
    join('/sys/fs/cgroup', name, 'sallyport'),
  );
  const found = await Promise.all(names.map((folder) => readdir(folder).catch(() => [])));
  return found.flat().filter((name) => name === id);
}

describe.runIf(isThere)('bubblewrap', () => {
  test.each<[string, SpecInput, string]>([
    ['image', { image: 'debian' }, 'engine_unsupported'],
    ['agent', { agent: 'claude' }, 'engine_unsupported'],
    ['runtime', { runtime: 'runsc' }, 'runtime_missing'],
    ['required_services', { required_services: [{ name: 'db', image: 'x' }] }, 'engine_unsupported'],
    ['engine', { engine: 'docker' }, 'daemon_engine_differs'],
    // Nothing holds a box to them without control groups.
    ...(isRoot
      ? []
      : ([
          ['limits.memory', { limits: { memory: '1g' } }, 'engine_unsupported'],
          ['profile', { profile: 'strict' }, 'engine_unsupported'],
        ] satisfies [string, SpecInput, string][])),
  ])('refuses %s before anything is made', async (_field, spec, code) => {
    const { sandboxes, world } = await openSandboxes({ on: 'bubblewrap' });
    const body = createBody.safeParse({ spec });
    if (!body.success) throw body.error;
    await expect(sandboxes.create(body.data)).rejects.toMatchObject({ code });
    expect(sandboxes.list()).toEqual([]);
    expect(await world.engine.list(world.owner)).toEqual([]);
  });

  when(asRoot).test('[C2] holds the strict profile, row by row', async () => {
    const { make } = await openSandboxes({ on: 'bubblewrap' });
    const box = await make({ spec: { profile: 'strict' } });
    const { ok, checks } = await box.verify();
    expect(ok).toBe(true);
    const found = Object.fromEntries(checks.map(({ name, found: seen }) => [name, seen]));
    expect(found).toMatchObject({
      user: '65534 65534 65534 65534',
      'capabilities bnd': '0000000000000000',
      'no new privileges': '1',
      memory: String(256 * 2 ** 20),
      cpus: '0.5',
      processes: '100',
      interfaces: 'lo',
      root: 'ro',
      '/tmp': 'tmpfs noexec',
    });
    const script = `
      df -B1 --output=size /tmp | tail -1
      for folder in /tmp /dev/shm; do cp /bin/true $folder/copy && $folder/copy; echo $?; done
      find / -xdev -writable -type d; touch /x /home/x /var/x 2>/dev/null; echo $?; /bin/true; echo $?`;
    const { stdout } = await runInSandbox(box, ['sh', '-c', script]);
    // What cannot be executed there can be elsewhere, so it is the folder and not the program.
    expect(stdout.data.trim().split('\n')).toEqual([String(64 * 2 ** 20), '126', '126', '/tmp', '1', '0']);
    expect(box.record.plan.labels).toMatchObject({ 'dev.sallyport.sandbox': 'ephemeral' });
  });

  test('refuses a place in a folder of the system, and leaves nothing', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'sallyport-bw-'));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const { sandboxes, world } = await openSandboxes({ on: 'bubblewrap' });
    const spec = { mounts: [{ source: folder, target: '/usr/share/mine' }] };
    const box = await sandboxes.create(createBody.parse({ spec }));
    await expect(box.ready()).rejects.toMatchObject({ code: 'engine_unsupported' });
    expect(await world.engine.list(world.owner)).toEqual([]);
  });

  test('[R11] is the strongest runtime where there is no other', async () => {
    const { make } = await openSandboxes({ on: 'bubblewrap' });
    const box = await make({ spec: { runtime: 'strongest' } });
    expect(box.view().isolation).toMatchObject({ runtime: 'bwrap', level: 'bubblewrap' });
    expect((await runInSandbox(box, ['echo', 'runs'])).stdout.data).toBe('runs\n');
  });

  test('says in `inspect` what it isolates less', async () => {
    const { make } = await openSandboxes({ on: 'bubblewrap' });
    const { isolation } = (await make()).view();
    expect(isolation).toMatchObject({ engine: 'bubblewrap', runtime: 'bwrap', network: 'none' });
    expect(isolation.weaker?.join('\n')).toContain("this machine's programs");
    const unlimited = isolation.weaker?.some((line) =>
      line.includes('not limited: there is no control group'),
    );
    expect(unlimited).toBe(!isRoot);
  });

  test('ends with its own first process, and lives on without bubblewrap', async () => {
    const { make, sandboxes, stateDir } = await openSandboxes({ on: 'bubblewrap' });
    const box = await make();
    const id = String(box.record.containerId);
    const before = await processesOf(id);
    const programs = new Set(before.map(({ program }) => program));
    expect([...programs].sort()).toEqual(['/.sallyport/porter', '/usr/bin/bwrap']);
    for (const { pid, program } of before) if (program.endsWith('bwrap')) process.kill(pid, 'SIGKILL');
    expect((await runInSandbox(box, ['echo', 'on'])).stdout.data).toBe('on\n');
    const lost = await startInSandbox(box, ['sleep', '100'], { background: true });
    const status = await readFile(join(stateDir, 'bubblewrap', id, 'status'), 'utf8');
    process.kill(Number(/"child-pid": (\d+)/.exec(status)?.[1]), 'SIGKILL');
    await lost.ended;
    const abort = new AbortController();
    for await (const event of sandboxes.events.follow(0, abort.signal)) {
      if (event.type === 'sandbox.state' && event.to === 'STOPPED') break;
    }
    await box.start();
    expect((await runInSandbox(box, ['echo', 'again'])).stdout.data).toBe('again\n');
    if (isRoot) expect(await cgroupsOf(id)).not.toEqual([]);
    await box.remove({ force: true });
    await untilNone(id);
    expect(await cgroupsOf(id)).toEqual([]);
  });

  test('[A16] outlives a daemon that is killed, and is found by the next one', async () => {
    const daemon = await testDaemon({ SALLYPORT_ENGINE: 'bubblewrap' });
    const box = await Sandbox.create({ name: 'survivor' }, { client: daemon.client });
    onTestFinished(() =>
      Sandbox.connect('survivor', { client: daemon.client }).then((made) => made.remove()),
    );
    await box.exec(['sh', '-c', 'echo kept > /tmp/in-memory']);
    await daemon.kill();
    const again = await Sandbox.connect('survivor', { client: daemon.client });
    // The same run of it: what is only in memory is still there.
    expect((await again.exec(['cat', '/tmp/in-memory'])).stdout).toBe('kept\n');
    expect((await daemon.health()).engine).toMatchObject({ name: 'bubblewrap', reachable: true });
  });
});

test.runIf(isThere)('[O2] sally explain shows the line of bubblewrap, and makes nothing', async () => {
  const folder = await newFolder();
  const asked = await sally([
    'explain',
    '--json',
    '--engine',
    'bubblewrap',
    '--workspace',
    folder,
    '--',
    'id',
  ]);
  const { request, command_line, docker_run } = JSON.parse(asked.stdout) as {
    request: { keeper: string[]; bubblewrap: string[]; control_groups: object | null; weaker: string[] };
    command_line: string;
    docker_run?: string;
  };
  expect(docker_run).toBeUndefined();
  expect(request.bubblewrap).toEqual(
    expect.arrayContaining(['--unshare-user', '--disable-userns', '--cap-drop', '--seccomp', '/workspace']),
  );
  expect(request.keeper.some((word) => word.startsWith('--user='))).toBe(isRoot);
  expect(request.control_groups !== null).toBe(isRoot);
  expect(request.weaker.join()).toContain("this machine's programs");
  expect(command_line).toContain(' -- /usr/bin/bwrap --unshare-user ');
  const refused = await sally([
    'explain',
    '--json',
    '--engine',
    'bubblewrap',
    '--image',
    'debian',
    '--',
    'id',
  ]);
  expect(JSON.parse(refused.stdout)).toMatchObject({ error: { code: 'engine_unsupported' } });
});

describe('the choice of an engine', () => {
  const root = packageInfo().root;
  const entry = join(root, 'dist/cli/sally.cjs');

  // Root would start the engine that is installed, as it should: it is hidden from what runs here.
  const hiding = [
    'unshare',
    '-m',
    'sh',
    '-c',
    'mount --bind /dev/null "$0" && exec "$@"',
    '/usr/sbin/dockerd',
  ];
  const [program = process.execPath, ...before] =
    isRoot && existsSync('/usr/sbin/dockerd') ? [...hiding, process.execPath] : [];

  /** Where no container engine answers or can be started, and nobody can be asked. */
  async function sallyWithout(args: readonly string[], stateDir: string) {
    const { DOCKER_HOST: _host, DOCKER_CONTEXT: _context, XDG_RUNTIME_DIR: _dir, ...inherited } = process.env;
    const env = {
      ...inherited,
      HOME: stateDir,
      SALLYPORT_STATE_DIR: stateDir,
      // A place with nothing in it: the engine of the run is not to be found.
      SALLYPORT_ENGINE_DIR: join(stateDir, 'none'),
    };
    const child = spawn(program, [...before, '--', entry, ...args], { env, cwd: stateDir, stdio: 'pipe' });
    child.stdin.end();
    let [stdout, stderr] = ['', ''];
    child.stdout.on('data', (chunk) => (stdout += chunk));
    child.stderr.on('data', (chunk) => (stderr += chunk));
    const code = await new Promise<number | null>((resolve) => child.on('close', resolve));
    return { code, stdout, stderr };
  }

  /** The same at a terminal of its own, where somebody answers the question. */
  async function atTerminal(args: readonly string[], stateDir: string, answer: string) {
    const { DOCKER_HOST: _host, DOCKER_CONTEXT: _context, XDG_RUNTIME_DIR: _dir, ...inherited } = process.env;
    const line = [program, ...before, '--', entry, ...args].map(quoted).join(' ');
    const { child, said, result } = startSally(['-qec', line, '/dev/null'], {
      command: ['script'],
      openInput: true,
      cwd: stateDir,
      env: {
        ...(inherited as Record<string, string>),
        DOCKER_HOST: '',
        HOME: stateDir,
        SALLYPORT_STATE_DIR: stateDir,
        SALLYPORT_ENGINE_DIR: join(stateDir, 'none'),
      },
    });
    await said('use bubblewrap on this machine from now on? [y/N] ');
    child.stdin?.write(`${answer}\n`);
    const ended = await result;
    child.stdin?.end();
    return ended;
  }

  const quoted = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`;

  async function stateFolder(): Promise<string> {
    const folder = await mkdtemp(join(tmpdir(), 'sallyport-choice-'));
    onTestFinished(async () => {
      await sallyWithout(['daemon', 'stop', '--all'], folder);
      await rm(folder, { recursive: true, force: true });
    });
    return folder;
  }

  /** Where one answers at the place of every Docker, `auto` takes it. */
  const noDocker = requirement('no engine at its usual place', !existsSync('/var/run/docker.sock'));

  test.runIf(isThere && noDocker)(
    'never falls to a weaker one unasked: naming it chooses it for that sandbox alone',
    async () => {
      const folder = await stateFolder();
      const unasked = await sallyWithout(['run', '--', 'id', '-u'], folder);
      expect(unasked).toMatchObject({ stdout: '', stderr: expect.stringContaining('--engine bubblewrap') });
      expect(unasked.stderr).toContain('isolates less');
      expect(unasked.code).not.toBe(0);
      const chosen = await sallyWithout(['run', '--engine', 'bubblewrap', '--', 'id', '-un'], folder);
      expect(chosen.stdout).toBe('sally\n');
      expect(chosen.stderr).toContain('isolates less');
      expect(await sallyWithout(['run', '--', 'id', '-un'], folder)).toMatchObject({ code: 125, stdout: '' });
    },
  );

  test.runIf(isThere && noDocker && requirement('script', commandExists('script')))(
    'asks at a terminal: a no is no choice, a yes is one, and is not asked again',
    async () => {
      const folder = await stateFolder();
      const command = ['run', '--', 'id', '-un'];
      const denied = await atTerminal(command, folder, 'n');
      expect(denied.stdout).toContain("this machine's programs and libraries");
      expect(denied.stdout).toContain('--engine bubblewrap');
      expect(denied.code).not.toBe(0);
      expect(existsSync(join(folder, 'engine'))).toBe(false);
      const chosen = await atTerminal(command, folder, 'y');
      expect(chosen.stdout).toMatch(/sally\r\n$/);
      expect(chosen.code).toBe(0);
      expect(await readFile(join(folder, 'engine'), 'utf8')).toBe('bubblewrap\n');
      expect(await sallyWithout(command, folder)).toMatchObject({ code: 0, stdout: 'sally\n' });
    },
  );
});

when(asRoot, isThere).describe('an ordinary user', () => {
  /** A user of every Debian system; its programs must be where it can read them. */
  const user = { uid: 33, gid: 33 };

  test('has sandboxes too, with a live workspace, and what cannot be held is refused', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'sallyport-user-'));
    await chmod(folder, 0o755);
    const { root } = packageInfo();
    const parts = [
      'package.json',
      'dist',
      'porter/build',
      'node_modules/zod',
      'node_modules/ws',
      'node_modules/yaml',
      'node_modules/unbash',
    ];
    for (const part of [...parts, 'node_modules/modern-tar']) {
      await cp(join(root, part), join(folder, 'sallyport', part), { recursive: true });
    }
    await promisify(execFile)('chmod', ['-R', 'a+rX', join(folder, 'sallyport')]);
    for (const name of ['state', 'work']) {
      await mkdir(join(folder, name), { mode: 0o700 });
      await chown(join(folder, name), user.uid, user.gid);
    }
    const sally = async (...args: readonly string[]) =>
      await promisify(execFile)(
        process.execPath,
        ['--', join(folder, 'sallyport/dist/cli/sally.cjs'), ...args],
        {
          ...user,
          cwd: join(folder, 'work'),
          env: {
            PATH: '/usr/bin:/bin',
            HOME: folder,
            SALLYPORT_STATE_DIR: join(folder, 'state'),
            SALLYPORT_ENGINE: 'bubblewrap',
          },
        },
      );
    onTestFinished(async () => {
      await sally('daemon', 'stop');
      await rm(folder, { recursive: true, force: true });
    });
    const { stdout } = await sally(
      'run',
      '--workspace',
      '.',
      '--',
      'sh',
      '-c',
      'id -un; echo made > file; ulimit -c',
    );
    expect(stdout).toBe('sally\n0\n');
    const made = await stat(join(folder, 'work/file'));
    expect([made.uid, made.gid]).toEqual([user.uid, user.gid]);
    const name = (await sally('create', '--name', 'mine', '--egress', 'deny')).stdout.trim();
    const [seen] = JSON.parse((await sally('inspect', name)).stdout) as [
      { container_id: string; isolation: { weaker: string[] } },
    ];
    expect(seen.isolation.weaker).toContain('outside it is your own user: what gets out of it is you');
    const running = await processesOf(seen.container_id);
    expect(running.length).toBeGreaterThanOrEqual(2);
    for (const { pid } of running) expect((await stat(`/proc/${pid}`)).uid, String(pid)).not.toBe(0);
    expect(JSON.parse((await sally('verify', name, '--json')).stdout)).toMatchObject({ ok: true });
    await expect(sally('pause', name)).rejects.toMatchObject({
      stderr: expect.stringContaining('control group'),
    });
    await expect(sally('run', '--memory', '1g', '--', 'true')).rejects.toMatchObject({
      stderr: expect.stringContaining('limits.memory'),
    });
    // A guarded command has the strict profile where it can be held; here it is told that it had less, or is refused.
    const guarded = await sally('guard', '--json', '--', 'frobnicate; id -un; cat /proc/self/uid_map');
    expect(JSON.parse(guarded.stdout)).toMatchObject({
      status: 'success',
      sandboxed: true,
      engine: 'bubblewrap',
      stdout: expect.stringMatching(/^sally\n/),
      reason: expect.stringContaining(
        'it had the standard profile: profile: of the strict profile nothing would hold',
      ),
    });
    const before = await readdir(join(folder, 'state/bubblewrap'));
    const strict = sally('guard', '--json', '--profile', 'strict', '--', 'frobnicate; touch /tmp/never');
    await expect(strict).rejects.toMatchObject({
      stdout: expect.stringContaining('"code": "engine_unsupported"'),
    });
    // That of the command before may still be going: it is removed without waiting for it.
    const after = await readdir(join(folder, 'state/bubblewrap'));
    expect(after.filter((each) => !before.includes(each))).toEqual([]);
    await sally('stop', name);
    await sally('start', name);
    expect((await sally('exec', name, '--', 'echo', 'on')).stdout).toBe('on\n');
    await sally('rm', name);
    await untilNone(seen.container_id);
    const left = await readdir(join(folder, 'state/bubblewrap'));
    expect(left.filter((kept) => !/^etc-[0-9a-f]{16}$/.test(kept))).toEqual([]);
  });
});
