/** [R11] Whole sandboxes, through the daemon, where the kernel or the engine is another one: gVisor, and Podman's Docker-compatible API. */

import { execFileSync } from 'node:child_process';
import { chown, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { engineInfo } from '../../src/engines/docker/system/info.ts';
import type { EngineConnection } from '../../src/engines/docker/wire/connection.ts';
import { followWireEvents } from '../../src/sdk/events.ts';
import { type CreateOptions, Sandbox, type Verification } from '../../src/sdk/sandbox.ts';
import { daemonHome } from '../support/daemon-home.ts';
import { testDns } from '../support/dns-server.ts';
import { testEngine } from '../support/engine.ts';
import { helloServer, openFor } from '../support/gate-box.ts';
import { copyImage, type PodmanService, startPodman } from '../support/podman.ts';
import { commandExists, full, requirement } from '../support/requires.ts';
import { asRoot, onGvisor, when } from '../support/selection.ts';

interface Place {
  readonly connection: EngineConnection;
  readonly image: string;
  readonly runtime?: string;
}

const statusesOf = ({ checks }: Verification, status: string): readonly string[] =>
  checks.filter((check) => check.status === status).map(({ name }) => name);

/** A daemon for this place, and how to make a sandbox there. */
async function openPlace({ connection, image, runtime }: Place, env: Readonly<Record<string, string>> = {}) {
  const home = await daemonHome(connection);
  const daemon = await home.start(env);
  const spec = { image, ...(runtime === undefined ? {} : { runtime }) };
  return {
    home,
    daemon,
    make: (more: CreateOptions = {}) => Sandbox.create({ ...spec, ...more }, { client: daemon.client }),
  };
}

async function workspace(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'sallyport-workspace-'));
  onTestFinished(() => rm(path, { recursive: true, force: true }));
  await chown(path, 1234, 1234);
  return path;
}

/** Tries each mount and each folder, so deep, by making a file there. One process, because gVisor takes long to start many. */
const writableFolders = (depth: number): string => `
import os
mounts = [line.split(' ')[4] for line in open('/proc/self/mountinfo')]
device = os.stat('/').st_dev
places = set(mounts)
for folder, below, files in os.walk('/'):
    deep = folder.rstrip('/').count('/') >= ${depth}
    below[:] = [] if deep else [name for name in below if os.lstat(os.path.join(folder, name)).st_dev == device]
    places.add(folder)
for place in sorted(places):
    try:
        os.close(os.open(os.path.join(place, '.w'), os.O_CREAT | os.O_WRONLY))
        print(place)
    except OSError:
        pass
`;

interface Expected {
  readonly unknown: readonly string[];
  readonly writable: readonly string[];
  /** Of folders that are tried for that. */
  readonly depth: number;
}

/** What must hold wherever a sandbox is. */
function behavesLikeASandbox(place: () => Place, { unknown, writable, depth }: Expected): void {
  test('runs commands as a user with a name and a home, and holds files', async () => {
    const { make } = await openPlace(place());
    const box = await make({ envs: { GREETING: 'hello' } });
    const { exitCode, stdout, stderr } = await box.sh('echo $GREETING; whoami; echo ~; echo bad >&2; exit 3');
    expect({ exitCode, stdout, stderr }).toEqual({
      exitCode: 3,
      stdout: 'hello\nsally\n/home/sally\n',
      stderr: 'bad\n',
    });
    await box.files.write('/home/sally/file', 'content');
    expect((await box.exec(['cat', 'file'], { cwd: '/home/sally' })).stdout).toBe('content');
    expect((await box.exec(['cat'], { input: 'given' })).stdout).toBe('given');
    expect(await box.exec(['sleep', '100'], { timeoutMs: 300, graceMs: 100 })).toMatchObject({
      timedOut: true,
    });
    await box.remove();
  });

  test('has in force what was asked for, and what the runtime does not show is unknown, never failed', async () => {
    const { make } = await openPlace(place());
    const box = await make({ limits: { memory: '512m', cpus: 1, pids: 100 } });
    const verification = await box.verify();
    expect(statusesOf(verification, 'failed')).toEqual([]);
    expect(statusesOf(verification, 'unknown').toSorted()).toEqual(unknown.toSorted());
    expect(statusesOf(verification, 'ok')).toEqual(
      expect.arrayContaining(['user', 'group', 'capabilities eff', 'capabilities bnd', 'interfaces']),
    );
    await box.remove();
  });

  test('[C2] strict: the root cannot be written, /tmp cannot run programs, and nothing failed', async () => {
    const { make } = await openPlace(place());
    const box = await make({ profile: 'strict' });
    expect(statusesOf(await box.verify(), 'failed')).toEqual([]);
    // Where a user may write: only what was given, also where an engine likes to add something.
    const { stdout } = await box.exec(['python3', '-c', writableFolders(depth)]);
    expect(stdout.trim().split('\n')).toEqual(writable);
    expect((await box.sh('cp /bin/true /tmp/t && /tmp/t')).exitCode).toBe(126);
    expect((await box.sh('echo > /tmp/x && cat /tmp/x')).exitCode).toBe(0);
    await box.remove();
  });

  test('is stopped and started, again and again, keeps its files and answers each time', async () => {
    const { make } = await openPlace(place());
    const box = await make();
    await box.sh('echo kept > ~/file', { check: true });
    for (let round = 0; round < (full ? 4 : 2); round++) {
      await box.stop();
      await expect(box.exec(['true'])).rejects.toMatchObject({ code: 'sandbox_state' });
      await box.start();
      expect((await box.sh('cat ~/file')).stdout).toBe('kept\n');
      expect((await box.exec(['cat'], { input: `round ${round}` })).stdout).toBe(`round ${round}`);
    }
    await box.remove();
  });

  test('[A16] survives its daemon: nothing of a running command is lost, and the next daemon can start it anew', async () => {
    const { home, daemon, make } = await openPlace(place());
    const made = await make();
    const script = 'i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done; cat; exit 9';
    const running = await made.spawn(['sh', '-c', script], { background: true, stdin: true });
    const seen = await running.stdout[Symbol.asyncIterator]().next();
    expect(seen.done).toBe(false);
    daemon.child.kill('SIGKILL');
    await daemon.ended;
    const next = await home.start();
    const box = await Sandbox.connect(made.id, { client: next.client });
    const again = box.attach(running.id, { stdin: true });
    again.stdin.end('the end\n');
    const { exitCode } = await again.wait();
    let bytes = 0;
    for await (const chunk of box.logs(running.id, { stream: 'stdout' })) bytes += chunk.length;
    const lines = Array.from({ length: 20_000 }, (_, index) => `line ${index}\n`).join('');
    expect({ exitCode, bytes }).toEqual({ exitCode: 9, bytes: lines.length + 'the end\n'.length });
    await box.stop();
    await box.start();
    expect((await box.exec(['echo', 'again'])).stdout).toBe('again\n');
    await box.remove();
  });

  test('[A11] a live workspace is the folder itself, and what is made there belongs to its owner', async () => {
    const { make } = await openPlace(place());
    const path = await workspace();
    const box = await make({ workspace: { path } });
    expect((await box.sh('id -u; pwd; echo made > file')).stdout).toBe('1234\n/workspace\n');
    expect(await readFile(join(path, 'file'), 'utf8')).toBe('made\n');
    expect((await stat(join(path, 'file'))).uid).toBe(1234);
    // Of a lender, where the kernel is the host's.
    expect((await box.exec(['python3', '-c', 'import select; print(select.epoll().closed)'])).stdout).toBe(
      'False\n',
    );
    for await (const { kind } of box.files.watch('/workspace')) {
      expect(kind).toBe('ready');
      break;
    }
    expect(statusesOf(await box.verify(), 'failed')).toEqual([]);
    await box.remove();
  });

  test('[A2][A4][A5][O8] copies and a tool’s folder come in, and what changed in a copied workspace goes back', async () => {
    const user = await workspace();
    const at = (path: string): string => join(user, path);
    await mkdir(at('.claude'));
    await writeFile(at('.claude/settings'), 'tool\n');
    // Leads out, so that the folder is not mounted but copied.
    await symlink('/etc/hostname', at('.claude/out'));
    await mkdir(at('project/node_modules'), { recursive: true });
    await writeFile(at('project/file'), 'one\n');
    await writeFile(at('project/gone'), 'gone\n');
    await writeFile(at('single'), 'single\n');
    execFileSync('chown', ['-R', '1234:1234', user]);
    const { make } = await openPlace(place(), { HOME: user });
    const box = await make({
      builtinTools: ['claude'],
      copies: [
        { source: at('project'), target: '/in/tree' },
        { source: at('single'), target: '/in/single' },
      ],
      workspace: { path: at('project'), mode: 'copy', excludePatterns: ['node_modules/'] },
    });
    const { stdout } = await box.sh(
      'cat ~/.claude/settings /in/tree/file /in/single file; ls /in/tree; ls; stat -c %U /in/tree/file file ~/.claude',
    );
    expect(stdout.split('\n')).toEqual([
      ...['tool', 'one', 'single', 'one'],
      ...['file', 'gone', 'node_modules', 'file', 'gone'],
      ...['sally', 'sally', 'sally', ''],
    ]);
    await box.sh(
      'echo two >> file; rm gone; mkdir -p new node_modules/x; echo new > new/run; chmod +x new/run',
      {
        check: true,
      },
    );
    const { changes } = await box.changes();
    expect(changes.map(({ path, change }) => `${change} ${path}`)).toEqual([
      'changed file',
      'removed gone',
      'added new',
      'added new/run',
    ]);
    expect(await box.apply()).toMatchObject({ applied: true, conflicts: [] });
    expect(await readFile(at('project/file'), 'utf8')).toBe('one\ntwo\n');
    expect((await stat(at('project/new/run'))).mode & 0o100).toBe(0o100);
    expect((await readdir(at('project'))).sort()).toEqual(['file', 'new', 'node_modules']);
    expect((await box.changes()).changes).toEqual([]);
    await box.stop();
    await box.start();
    expect((await box.sh('cat file ~/.claude/settings /in/single')).stdout).toBe('one\ntwo\ntool\nsingle\n');
    await box.remove();
  });

  test('a runtime that the engine lacks is refused, with those that it has, and nothing is made', async () => {
    const { home, daemon, make } = await openPlace(place());
    await expect(make({ runtime: 'no-such-runtime' })).rejects.toMatchObject({
      code: 'runtime_missing',
      details: { runtime: 'no-such-runtime', available: expect.arrayContaining(['runc']) },
    });
    expect(await home.engine.list(home.owner)).toEqual([]);
    expect(await Sandbox.list({ client: daemon.client })).toEqual([]);
  });
}

when(asRoot, onGvisor, requirement('gVisor (runsc)', commandExists('runsc'))).describe(
  '[R11] sandboxes on gVisor',
  () => {
    const place = (): Place => {
      const { connection, image } = testEngine();
      return { connection, image, runtime: 'runsc' };
    };
    behavesLikeASandbox(place, {
      unknown: ['capabilities amb', 'cpus', 'memory', 'no new privileges', 'processes'],
      writable: ['/dev/shm', '/tmp'],
      // It takes ten times as long for each as others do.
      depth: full ? 100 : 3,
    });

    test('have a kernel of their own, and say so', async () => {
      const { make } = await openPlace(place());
      const box = await make();
      expect((await box.exec(['dmesg'])).stdout).toContain('gVisor');
      expect(box.info.isolation).toMatchObject({ engine: 'docker', runtime: 'runsc' });
      await box.remove();
    });
  },
);

when(asRoot, requirement('Podman', commandExists('podman'))).describe('[R11] sandboxes on Podman', () => {
  let podman: PodmanService;

  beforeAll(async () => {
    const { connection, image } = testEngine();
    podman = await startPodman();
    await copyImage(connection, podman.connection, image);
  });
  afterAll(async () => {
    await podman?.stop();
  });

  behavesLikeASandbox(() => ({ connection: podman.connection, image: testEngine().image }), {
    unknown: [],
    writable: ['/dev/mqueue', '/dev/shm', '/tmp'],
    depth: 100,
  });

  test.each([
    ['has', true],
    ['has not', false],
  ])('[N5] have a note if /etc/hosts contains names of the machine: it %s', async (_, isShared) => {
    const file = join(await workspace(), 'hosts');
    await writeFile(file, '127.0.0.1 localhost\n10.9.8.7 vault.corp\n');
    const service = await startPodman(isShared ? file : 'none');
    onTestFinished(service.stop);
    const { connection: from, image } = testEngine();
    await copyImage(from, service.connection, image);
    const { daemon, make } = await openPlace({ connection: service.connection, image });
    const box = await make();
    expect((await box.sh('cat /etc/hosts')).stdout.includes('vault.corp')).toBe(isShared);
    const codes: string[] = [];
    for await (const event of followWireEvents(daemon.client, { sandbox: box.id, since: 0 })) {
      if (event.type === 'sandbox.note') codes.push(event.code);
      if (event.type === 'exec.started') break;
    }
    expect(codes.includes('hosts_shared')).toBe(isShared);
  });

  test('[R11] have its default runtime, which is the strongest there, and no other that Podman names', async () => {
    const place = { connection: podman.connection, image: testEngine().image };
    const { home, make } = await openPlace(place);
    const { runtimes, defaultRuntime } = await home.engine.facts();
    // Podman ignores the runtime that a request names.
    const named = (await engineInfo(podman.connection)).runtimes.filter((name) => name !== defaultRuntime);
    expect(runtimes).toEqual([defaultRuntime]);
    for (const runtime of ['runsc', 'kata'].filter((name) => named.includes(name)))
      await expect(make({ runtime })).rejects.toMatchObject({
        code: 'runtime_missing',
        details: { runtime },
      });
    const box = await make({ runtime: 'strongest' });
    expect(box.info.isolation).toMatchObject({ runtime: defaultRuntime, level: 'container' });
    expect((await box.exec(['echo', 'runs'])).stdout).toBe('runs\n');
    await box.remove();
  });

  test('[R6] has a gate with both entrances: by proxy, and by names alone', async () => {
    const hello = await helloServer();
    const dns = await testDns({ 'good.test': ['127.0.0.1'], 'evil.test': ['127.0.0.1'] });
    const place = { connection: podman.connection, image: testEngine().image };
    const { make } = await openPlace(place, { SALLYPORT_DNS_SERVERS: dns.server });
    const box = await make({ egress: { allow: openFor(hello.port, 'good.test') ?? [] } });
    const attempt = async (host: string): Promise<Record<string, string>> => {
      const request = (target: string): string =>
        `printf 'GET ${target} HTTP/1.1\\r\\nHost: ${host}:${hello.port}\\r\\nConnection: close\\r\\n\\r\\n' >&3; cat <&3`;
      const say = async (place: string, target: string): Promise<string> =>
        (await box.exec(['bash', '-c', `exec 3<>/dev/tcp/${place} && ${request(target)}`])).stdout;
      return {
        proxy: await say('127.0.0.1/3128', `http://${host}:${hello.port}/`),
        name: await say(`${host}/${hello.port}`, '/'),
      };
    };
    const reached = expect.stringContaining('hello from the test');
    expect(await attempt('good.test')).toEqual({ proxy: reached, name: reached });
    expect(await attempt('evil.test')).toEqual({ proxy: expect.stringContaining('403'), name: '' });
    expect(dns.asked).not.toContain('evil.test');
    const verified = await box.verify();
    expect(statusesOf(verified, 'failed')).toEqual([]);
    expect(statusesOf(verified, 'ok')).toContain('resolver');
    // As it was after a stop and a start.
    await box.stop();
    await box.start();
    expect(await attempt('good.test')).toEqual({ proxy: reached, name: reached });
    await box.remove();
  });
});
