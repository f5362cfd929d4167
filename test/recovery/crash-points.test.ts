/** The daemon is killed at every step of making, using, stopping and removing a sandbox. The next one makes all of it true again. */

import { chown, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { ExecResultView, ExecView, SandboxView } from '../../src/protocol/views.ts';
import { Sandbox } from '../../src/sdk/sandbox.ts';
import { type DaemonHome, daemonHome, type TestDaemon } from '../support/daemon-home.ts';
import { onDocker, testImage } from '../support/engine-under-test.ts';
import { asRoot, when } from '../support/selection.ts';
import { until } from '../support/until.ts';

const create = async (daemon: TestDaemon): Promise<SandboxView> =>
  await daemon.client.json<SandboxView>('POST', '/v1/sandboxes', {
    body: { spec: { name: 'victim', ...testImage() } },
  });

const sandboxesOf = async (daemon: TestDaemon): Promise<readonly SandboxView[]> =>
  (await daemon.client.json<{ sandboxes: SandboxView[] }>('GET', '/v1/sandboxes')).sandboxes;

/** Nothing is in the engine, and nothing on disk. */
async function expectNothingLeft(home: DaemonHome): Promise<void> {
  expect(await home.engine.list(home.owner)).toEqual([]);
  expect(await readdir(join(home.stateDir, 'sandboxes'))).toEqual([]);
  expect(await unfinished(home)).toEqual([]);
}

/** What bubblewrap keeps beside its boxes is one copy of /etc; on Docker there is no such folder. */
async function unfinished({ stateDir }: DaemonHome): Promise<readonly string[]> {
  const kept = await readdir(join(stateDir, 'bubblewrap')).catch(() => []);
  return kept.filter((name) => !/^etc-[0-9a-f]{16}$/.test(name));
}

describe('[A16] killed while a sandbox is made', () => {
  const steps = onDocker
    ? ['create.user-image', 'create.porter']
    : [
        'bubblewrap.folder',
        'bubblewrap.filled',
        'bubblewrap.draft',
        'bubblewrap.data',
        'bubblewrap.cgroups',
        'bubblewrap.etc',
      ];
  const points = [
    ...steps,
    'create.accepted',
    'create.image',
    'create.container',
    'create.recorded',
    'create.started',
    'create.greeted',
  ];
  test.each(points)('at %s: it failed, no container is left, and it can be made again', async (point) => {
    const home = await daemonHome();
    const first = await home.start({ SALLYPORT_CRASH_AT: point });
    await expect(create(first)).rejects.toBeDefined();
    await first.ended;
    expect(first.child.signalCode).toBe('SIGKILL');
    const next = await home.start();
    expect(await home.engine.list(home.owner)).toEqual([]);
    expect(await unfinished(home)).toEqual([]);
    expect(await sandboxesOf(next)).toMatchObject([{ name: 'victim', state: 'FAILED' }]);
    await next.client.json('POST', '/v1/sandboxes/victim/start');
    const { stdout } = await next.client.json<ExecResultView>('POST', '/v1/sandboxes/victim/execs', {
      query: { wait: true },
      body: { argv: ['echo', 'made'] },
    });
    expect(stdout.data).toBe('made\n');
    await next.client.json('DELETE', '/v1/sandboxes/victim');
    await expectNothingLeft(home);
  });
});

when(asRoot).describe('[A6][A16] killed while something is copied', () => {
  test.each(['create.shadows', 'create.copied'])(
    'at %s: nothing of it is left, and it is made anew',
    async (point) => {
      const home = await daemonHome();
      const userHome = await mkdtemp(join(tmpdir(), 'sallyport-home-'));
      onTestFinished(() => rm(userHome, { recursive: true }));
      await mkdir(join(userHome, '.claude'));
      await writeFile(join(userHome, '.claude/file'), 'tool\n');
      await symlink('/etc/hostname', join(userHome, '.claude/out'));
      await chown(join(userHome, '.claude'), 1234, 1234);
      await mkdir(join(userHome, 'project'));
      await writeFile(join(userHome, 'project/file'), 'copy\n');
      const spec = {
        name: 'victim',
        ...testImage(),
        builtin_tools: ['claude'],
        copies: [{ source: join(userHome, 'project'), target: '/in' }],
      };
      const first = await home.start({ SALLYPORT_CRASH_AT: point, HOME: userHome });
      await expect(first.client.json('POST', '/v1/sandboxes', { body: { spec } })).rejects.toBeDefined();
      await first.ended;
      const next = await home.start({ HOME: userHome });
      expect(await home.engine.list(home.owner)).toEqual([]);
      expect(await sandboxesOf(next)).toMatchObject([{ name: 'victim', state: 'FAILED' }]);
      await next.client.json('POST', '/v1/sandboxes/victim/start');
      const { stdout } = await next.client.json<ExecResultView>('POST', '/v1/sandboxes/victim/execs', {
        query: { wait: true },
        body: { argv: ['sh', '-c', 'cat ~/.claude/file /in/file'] },
      });
      expect(stdout.data).toBe('tool\ncopy\n');
      await next.client.json('DELETE', '/v1/sandboxes/victim');
      await expectNothingLeft(home);
    },
  );
});

describe('[A16][O8] killed while changes become the baseline', () => {
  test.each([
    ['rebase.packed', ['changed', 'new']],
    ['rebase.saved', []],
  ] as const)(
    'at %s: it is the old one or the new one, whole, and the next apply ends it',
    async (point, changed) => {
      const home = await daemonHome();
      const folder = await mkdtemp(join(tmpdir(), 'sallyport-copied-'));
      onTestFinished(() => rm(folder, { recursive: true }));
      await writeFile(join(folder, 'changed'), 'before\n');
      await writeFile(join(folder, 'same'), 'same\n');
      const workspace = { path: folder, mode: 'copy' as const };
      const first = await home.start({ SALLYPORT_CRASH_AT: point });
      const made = await Sandbox.create({ ...testImage(), workspace }, { client: first.client });
      await made.sh('cd /workspace && echo after > changed && echo new > new', { check: true });
      await expect(made.apply()).rejects.toBeDefined();
      await first.ended;
      expect(await readFile(join(folder, 'changed'), 'utf8')).toBe('after\n');
      const next = await home.start();
      const box = await Sandbox.connect(made.id, { client: next.client });
      expect((await box.changes()).changes.map(({ path }) => path)).toEqual(changed);
      // What is kept of the old state fits to it.
      await box.sh('cd /workspace && echo more >> changed', { check: true });
      let patch = '';
      for await (const { bytes } of box.diff()) patch += bytes.toString();
      expect(patch).toContain(changed.length > 0 ? '-before\n+after\n+more\n' : ' after\n+more\n');
      await box.sh('cd /workspace && echo after > changed', { check: true });
      expect(await box.apply()).toMatchObject({ applied: true, written: [], conflicts: [] });
      expect((await box.changes()).changes).toEqual([]);
      await box.remove();
    },
  );
});

describe('[A16] killed while a command runs', () => {
  const script = 'for i in $(seq 1 200); do echo line $i; done; exit 5';
  const whole = Array.from({ length: 200 }, (_, line) => `line ${line + 1}\n`).join('');
  const body = { argv: ['sh', '-c', script], background: true };

  test.each(['exec.sent', 'exec.ended', 'exec.recorded-end'])(
    'at %s: nothing of its output or its exit is lost',
    async (point) => {
      const home = await daemonHome();
      const first = await home.start({ SALLYPORT_CRASH_AT: point });
      await create(first);
      await first.client.json('POST', '/v1/sandboxes/victim/execs', { body }).catch(() => {});
      await first.ended;
      const next = await home.start();
      const { execs } = await next.client.json<{ execs: ExecView[] }>('GET', '/v1/sandboxes/victim/execs');
      expect(execs).toHaveLength(1);
      const path = `/v1/sandboxes/victim/execs/${execs[0]?.id}/wait`;
      const { exec, stdout } = await next.client.json<ExecResultView>('GET', path);
      expect(exec).toMatchObject({ state: 'exited', exit_code: 5 });
      expect(stdout.data).toBe(whole);
      await next.client.json('DELETE', '/v1/sandboxes/victim');
      await expectNothingLeft(home);
    },
  );

  test('at exec.recorded: it is known that it never ran', async () => {
    const home = await daemonHome();
    const first = await home.start({ SALLYPORT_CRASH_AT: 'exec.recorded' });
    await create(first);
    await first.client.json('POST', '/v1/sandboxes/victim/execs', { body }).catch(() => {});
    await first.ended;
    const next = await home.start();
    const { execs } = await next.client.json<{ execs: ExecView[] }>('GET', '/v1/sandboxes/victim/execs');
    expect(execs).toMatchObject([{ state: 'lost', error: { code: 'exec_not_sent' } }]);
    await next.client.json('DELETE', '/v1/sandboxes/victim');
    await expectNothingLeft(home);
  });
});

describe('[A16][N5] killed while a sandbox is started again', () => {
  test.each([
    ['as it was', {}],
    ['to be cleaned up', { clean_up: true }],
  ])('%s: what it has written stays', async (_name, body) => {
    const home = await daemonHome();
    const first = await home.start({ SALLYPORT_CRASH_AT: 'create.started:2' });
    await create(first);
    const box = await Sandbox.connect('victim', { client: first.client });
    await box.sh('echo kept > ~/file', { check: true });
    await box.stop();
    const started = first.client.json('POST', '/v1/sandboxes/victim/start', { body });
    await expect(started).rejects.toBeDefined();
    await first.ended;
    const next = await home.start();
    const again = await Sandbox.connect('victim', { client: next.client });
    expect(again.info).toMatchObject({ state: 'FAILED', reason: 'the daemon ended while it was started' });
    expect(again.info.disk.cleanUp).toBeUndefined();
    await again.start();
    expect((await again.sh('cat ~/file')).stdout).toBe('kept\n');
    await again.remove({ force: true });
    await expectNothingLeft(home);
  });
});

describe('[A16][R5] killed while a container that was taken away is made again', () => {
  const points = ['create.recorded:2', 'create.started:2', 'create.greeted:2', 'create.copied:2'];
  test.each(points)('at %s: half a copy is neither kept nor taken for changes', async (point) => {
    const home = await daemonHome();
    const folder = await mkdtemp(join(tmpdir(), 'sallyport-copied-'));
    onTestFinished(() => rm(folder, { recursive: true }));
    await writeFile(join(folder, 'file'), 'mine\n');
    const spec = { ...testImage(), name: 'victim', workspace: { path: folder, mode: 'copy' as const } };
    const first = await home.start({ SALLYPORT_CRASH_AT: point });
    const made = await Sandbox.create(spec, { client: first.client });
    await made.stop();
    await home.engine.remove(made.info.containerId ?? '');
    await until(async () => (await sandboxesOf(first))[0]?.state === 'FAILED');
    await expect(first.client.json('POST', '/v1/sandboxes/victim/start')).rejects.toBeDefined();
    await first.ended;
    expect(first.child.signalCode).toBe('SIGKILL');
    const next = await home.start();
    expect(await home.engine.list(home.owner)).toEqual([]);
    const box = await Sandbox.connect('victim', { client: next.client });
    expect(box.info.state).toBe('FAILED');
    expect((await box.changes()).changes).toEqual([]);
    expect((await box.sh('cat /workspace/file')).stdout).toBe('mine\n');
    await box.remove();
    await expectNothingLeft(home);
  });
});

describe('[A16] killed while a sandbox is stopped or removed', () => {
  test('at stop.stopped: it is stopped, and starts again', async () => {
    const home = await daemonHome();
    const first = await home.start({ SALLYPORT_CRASH_AT: 'stop.stopped' });
    await create(first);
    await first.client.json('POST', '/v1/sandboxes/victim/stop', { body: {} }).catch(() => {});
    await first.ended;
    const next = await home.start();
    expect(await sandboxesOf(next)).toMatchObject([{ state: 'STOPPED' }]);
    await next.client.json('POST', '/v1/sandboxes/victim/start');
    expect(await sandboxesOf(next)).toMatchObject([{ state: 'READY' }]);
    await next.client.json('DELETE', '/v1/sandboxes/victim');
    await expectNothingLeft(home);
  });

  const removing = ['remove.recorded', 'remove.container', 'remove.store'];
  test.each([...removing, ...(onDocker ? [] : ['bubblewrap.killed'])])(
    'at %s: the next daemon finishes it',
    async (point) => {
      const home = await daemonHome();
      const first = await home.start({ SALLYPORT_CRASH_AT: point });
      await create(first);
      await first.client.json('DELETE', '/v1/sandboxes/victim').catch(() => {});
      await first.ended;
      const next = await home.start();
      expect(await sandboxesOf(next)).toEqual([]);
      await expectNothingLeft(home);
    },
  );
});
