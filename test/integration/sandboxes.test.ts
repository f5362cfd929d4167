/** Sandboxes on the real engine: made, used, stopped, lost and found again. */

import { chown, mkdir, mkdtemp, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { killContainer } from '../../src/engines/docker/containers/kill.ts';
import { deferred } from '../../src/lib/deferred.ts';
import type { SallyEvent } from '../../src/protocol/events.ts';
import { createBody } from '../../src/protocol/requests.ts';
import type { SandboxState } from '../../src/protocol/states.ts';
import type { Sandbox } from '../../src/sandboxes/sandbox.ts';
import type { Sandboxes } from '../../src/sandboxes/sandboxes.ts';
import { attachStalled } from '../support/attach-stalled.ts';
import { boxEngineOf, killFromOutside } from '../support/box-engine.ts';
import { testEngine } from '../support/engine.ts';
import { holdsLimits, onDocker, testImage } from '../support/engine-under-test.ts';
import { openSandboxes, runInSandbox, startInSandbox } from '../support/sandboxes.ts';
import { dockerAlone, when, withLimits } from '../support/selection.ts';

/** Resolves with the event that brings the sandbox into this state, also if that was before. */
async function untilState(sandboxes: Sandboxes, sandbox: Sandbox, state: SandboxState): Promise<SallyEvent> {
  const abort = new AbortController();
  try {
    for await (const event of sandboxes.events.follow(0, abort.signal)) {
      if (event.type === 'sandbox.state' && event.sandbox_id === sandbox.id && event.to === state)
        return event;
    }
  } finally {
    abort.abort();
  }
  throw new Error('the events ended');
}

async function folder(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'sallyport-workspace-'));
  onTestFinished(() => rm(path, { recursive: true, force: true }));
  return path;
}

describe('a sandbox', () => {
  test('[A15] runs commands, and every change is a numbered event', async () => {
    const { sandboxes, make, reports } = await openSandboxes();
    const box = await make({ spec: { name: 'first', envs: { GREETING: 'hello' } } });
    const { exec, stdout, stderr, output } = await runInSandbox(box, [
      'sh',
      '-c',
      'echo $GREETING; echo bad >&2; exit 3',
    ]);
    expect(exec).toMatchObject({ state: 'exited', exit_code: 3, timed_out: false, oom_killed: false });
    expect(stdout).toEqual({ encoding: 'utf8', data: 'hello\n', truncated: false, total_bytes: 6 });
    expect(stderr.data).toBe('bad\n');
    expect(output.total_bytes).toBe(10);
    await box.remove({ force: false });
    const events: SallyEvent[] = [];
    const abort = new AbortController();
    for await (const event of sandboxes.events.follow(0, abort.signal)) {
      events.push(event);
      if (event.sequence === sandboxes.events.sequence) break;
    }
    expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, index) => index + 1));
    const told = events.map((event) => (event.type === 'sandbox.state' ? event.to : event.type));
    expect(told).toEqual(['PENDING', 'READY', 'exec.started', 'exec.ended', 'DELETING', 'DELETED']);
    expect(() => sandboxes.get('first')).toThrow(/no sandbox/);
    expect(reports).toEqual([]);
  });

  test('[G6] is a user of its own, with a name and a home', async () => {
    const { make } = await openSandboxes();
    const [one, two] = [await make(), await make()];
    const first = await runInSandbox(one, ['sh', '-c', 'whoami; echo ~; touch ~/file && id -u']);
    expect(first.stdout.data).toMatch(/^sally\n\/home\/sally\n64\d\d\d\n$/);
    const second = await runInSandbox(two, ['id', '-u']);
    expect(second.stdout.data.trim()).not.toBe(first.stdout.data.trim().split('\n')[2]);
  });

  when(dockerAlone).test(
    'leaves the attached stream: then nobody who attaches and does not read can hold it',
    async () => {
      const { make, reports } = await openSandboxes();
      const box = await make();
      // Half of it before, half of it after.
      const { stdout } = await runInSandbox(box, [
        'sh',
        '-c',
        'for i in $(seq 30); do echo $i; sleep 0.1; done',
      ]);
      expect(stdout.data).toBe(Array.from({ length: 30 }, (_, index) => `${index + 1}\n`).join(''));
      expect(box.record.epoch).toBe(2);
      const { connection } = testEngine();
      await attachStalled(connection, String(box.record.containerId));
      const flood = await runInSandbox(box, ['head', '-c', '20000000', '/dev/zero']);
      expect(flood.stdout.total_bytes).toBe(20_000_000);
      const began = performance.now();
      await box.stop(1000);
      expect(performance.now() - began).toBeLessThan(8000);
      expect(reports).toEqual([]);
    },
  );

  when(dockerAlone).test(
    'answers a call that is made while its connection moves, also if that takes longer than an answer may',
    async () => {
      const { connection } = testEngine();
      const held = deferred<void>();
      let slow: string | undefined;
      const { make, reports } = await openSandboxes({
        onRelay: async (id) => {
          if (id !== slow) return;
          await killContainer(connection, id, 'SIGSTOP');
          held.resolve();
        },
      });
      const clock = await make();
      const box = await make();
      slow = box.record.containerId;
      await held.promise;
      const call = runInSandbox(box, ['echo', 'there']);
      await runInSandbox(clock, ['sleep', '4']);
      await killContainer(connection, slow ?? '', 'SIGCONT');
      expect((await call).stdout.data).toBe('there\n');
      expect(box.record.epoch).toBe(2);
      expect(reports).toEqual([]);
    },
  );

  when(dockerAlone).test('does not leave the attached stream while files are under way', async () => {
    const { make, reports } = await openSandboxes();
    const box = await make();
    const watch = (await box.files()).watch('/tmp');
    expect((await watch.next()).value).toMatchObject({ kind: 'ready' });
    await runInSandbox(box, ['sh', '-c', 'sleep 2.5; touch /tmp/file']);
    expect((await watch.next()).value).toMatchObject({ path: Buffer.from('file') });
    expect(box.record.epoch).toBe(1);
    await watch.return(undefined);
    await runInSandbox(box, ['sleep', '2.5']);
    expect(box.record.epoch).toBe(2);
    expect(reports).toEqual([]);
  });

  test('[G5] ends a command and all that it started at its deadline', async () => {
    const { make } = await openSandboxes();
    const box = await make();
    const { exec } = await runInSandbox(box, ['sh', '-c', '(setsid sleep 100 &) ; sleep 100'], {
      timeout_ms: 200,
      grace_ms: 100,
    });
    expect(exec).toMatchObject({ timed_out: true });
    const left = await runInSandbox(box, ['sh', '-c', 'cat /proc/[0-9]*/comm | grep -c "^sleep"']);
    expect(left.stdout.data).toBe('0\n');
  });

  when(withLimits).test('[G5] tells a death for want of memory from any other kill', async () => {
    const { make } = await openSandboxes();
    const box = await make({ spec: { limits: { memory: '64m' } } });
    // It keeps the last line, and there is none.
    const eaten = await runInSandbox(box, ['tail', '/dev/zero']);
    expect(eaten.exec).toMatchObject({ oom_killed: true });
    const killed = await runInSandbox(box, ['sh', '-c', 'kill -9 $$']);
    expect(killed.exec).toMatchObject({ oom_killed: false, signal: 'SIGKILL' });
  });

  test('[G5] keeps head and tail of much output, and says how much is left out', async () => {
    const { make } = await openSandboxes();
    const { stdout } = await runInSandbox(await make(), [
      'sh',
      '-c',
      'echo first; head -c 3000000 /dev/zero | tr "\\0" x; echo; echo last',
    ]);
    expect(stdout).toMatchObject({ truncated: true, total_bytes: 6 + 3_000_000 + 1 + 5 });
    expect(stdout.data).toMatch(/^first\n/);
    expect(stdout.data).toMatch(/\nlast\n$/);
    expect(stdout.data.length).toBeLessThan(300_000);
  });

  test('[G5] leaves nothing out of 256 KiB of output', async () => {
    const { make } = await openSandboxes();
    const line = (bytes: number) => ['sh', '-c', `head -c ${bytes} /dev/zero | tr "\\0" x`];
    const box = await make();
    const whole = await runInSandbox(box, line(256 * 1024));
    expect(whole.stdout).toMatchObject({ truncated: false, data: 'x'.repeat(256 * 1024) });
    const cut = await runInSandbox(box, line(256 * 1024 + 1));
    expect(cut.stdout).toMatchObject({ truncated: true, total_bytes: 256 * 1024 + 1 });
  });

  test('[G7] stops, starts again with what it had, and is removed once and for all', async () => {
    const { make } = await openSandboxes();
    const box = await make();
    await runInSandbox(box, ['sh', '-c', 'echo kept > ~/file']);
    await box.stop(1000);
    await box.stop(1000);
    expect(box.state).toBe('STOPPED');
    await expect(startInSandbox(box, ['true'])).rejects.toMatchObject({ code: 'sandbox_state' });
    await box.start();
    const { stdout } = await runInSandbox(box, ['sh', '-c', 'cat ~/file']);
    expect(stdout.data).toBe('kept\n');
    await box.remove({ force: false });
    await box.remove({ force: false });
    await expect(startInSandbox(box, ['true'])).rejects.toMatchObject({ code: 'sandbox_not_found' });
  });

  when(withLimits).test('is paused and goes on', async () => {
    const { make } = await openSandboxes();
    const box = await make();
    await box.pause();
    expect(box.state).toBe('PAUSED');
    await expect(startInSandbox(box, ['true'])).rejects.toMatchObject({ code: 'sandbox_state' });
    await box.resume();
    expect((await runInSandbox(box, ['echo', 'on'])).stdout.data).toBe('on\n');
  });

  test('runs its own command, and is removed with it when it is ephemeral', async () => {
    const { sandboxes, make } = await openSandboxes();
    const box = await make({ ephemeral: true, detached: true, spec: { command: ['echo', 'main'] } });
    await untilState(sandboxes, box, 'DELETED');
    expect(sandboxes.list()).toEqual([]);
  });

  test('[A16] is stopped when it is idle, and not while a command runs', async () => {
    const { sandboxes, make } = await openSandboxes();
    const box = await make({ spec: { idle_ttl: '300ms' } });
    const { exec } = await runInSandbox(box, ['sleep', '1']);
    expect(exec.exit_code).toBe(0);
    expect(await untilState(sandboxes, box, 'STOPPED')).toMatchObject({
      reason: 'it was not used for 300ms',
    });
  });

  test('an ephemeral one goes when its client is away', async () => {
    const { sandboxes, make } = await openSandboxes({ clientAbsenceMs: 200 });
    const box = await make({ ephemeral: true });
    await untilState(sandboxes, box, 'DELETED');
  });

  test('a foreground command is killed when its client is away, one in the background is not', async () => {
    const { make } = await openSandboxes({ clientAbsenceMs: 200 });
    const box = await make();
    const background = await startInSandbox(box, ['sleep', '2'], { background: true });
    const foreground = await startInSandbox(box, ['sleep', '100']);
    await foreground.ended;
    expect(foreground.view()).toMatchObject({ killed: true });
    await background.ended;
    expect(background.view()).toMatchObject({ exit_code: 0, killed: false });
  });

  when(withLimits).test.each(['standard', 'strict'] as const)(
    '[C2] verifies from inside what is in force (%s)',
    async (profile) => {
      const { make } = await openSandboxes();
      const { ok, checks } = await (await make({ spec: { profile } })).verify();
      expect(checks.filter(({ status }) => status !== 'ok')).toEqual([]);
      expect(ok).toBe(true);
      expect(checks.length).toBeGreaterThan(15);
    },
  );
});

describe('refusals make nothing', () => {
  test('a name is given once, also to two who ask at the same time', async () => {
    const { sandboxes } = await openSandboxes();
    const body = createBody.parse({ spec: { name: 'twin', ...testImage() } });
    const both = await Promise.allSettled([sandboxes.create(body), sandboxes.create(body)]);
    expect(both.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    await sandboxes.get('twin').ready();
    await expect(sandboxes.create(body)).rejects.toMatchObject({ code: 'sandbox_exists' });
    const again = await sandboxes.create({ ...body, reuse: true });
    expect(again.id).toBe(sandboxes.get('twin').id);
  });

  when(dockerAlone).test(
    'an image that does not exist leaves a failed sandbox and no container',
    async () => {
      const { sandboxes } = await openSandboxes();
      const box = await sandboxes.create(createBody.parse({ spec: { image: 'localhost:1/nothing:here' } }));
      await expect(box.ready()).rejects.toMatchObject({ code: 'image_pull_failed' });
      expect(box.view()).toMatchObject({ state: 'FAILED' });
      expect(box.view().container_id).toBeUndefined();
    },
  );

  when(withLimits).test('[O2] a box that is not as it was asked for is not used', async () => {
    const { sandboxes } = await openSandboxes({
      tamper: (box) => ({ ...box, readOnlyRoot: false, limits: { ...box.limits, memoryBytes: 2 ** 29 } }),
    });
    const body = createBody.parse({ spec: { ...testImage(), profile: 'strict' } });
    const box = await sandboxes.create(body);
    await expect(box.ready()).rejects.toMatchObject({
      code: 'isolation_missing',
      // The root of a box of bubblewrap is read-only, whatever was asked for.
      details: { checks: onDocker ? ['memory', 'root'] : ['memory'] },
    });
    expect(box.view()).toMatchObject({ state: 'FAILED' });
    expect(box.view().container_id).toBeUndefined();
  });

  test('a runtime that the engine lacks is refused', async () => {
    const { sandboxes } = await openSandboxes();
    await expect(sandboxes.create(createBody.parse({ spec: { runtime: 'nonsense' } }))).rejects.toMatchObject(
      {
        code: 'runtime_missing',
      },
    );
    expect(sandboxes.list()).toEqual([]);
  });

  test('[O4] a workspace in a forbidden place is refused, also through a link', async () => {
    const { sandboxes } = await openSandboxes();
    const link = join(await folder(), 'link');
    await symlink('/etc', link);
    for (const path of ['/etc', link, '/']) {
      const body = createBody.parse({ spec: { workspace: { path, mode: 'readonly' } } });
      await expect(sandboxes.create(body)).rejects.toMatchObject({ code: 'refused_by_policy' });
    }
    expect(sandboxes.list()).toEqual([]);
  });

  test('one that is removed while it is made leaves nothing', async () => {
    const { sandboxes } = await openSandboxes();
    const box = await sandboxes.create(createBody.parse({ spec: testImage() }));
    await Promise.all([box.remove({ force: false }), box.ready().catch(() => {})]);
    expect(box.state).toBe('DELETED');
    expect(sandboxes.list()).toEqual([]);
  });
});

describe('a workspace', () => {
  test('[A11] live is the folder itself, and what is made there belongs to its user', async () => {
    const { make } = await openSandboxes();
    const path = await folder();
    const uid = process.getuid?.() === 0 ? 1234 : (process.getuid?.() ?? -1);
    if (process.getuid?.() === 0) await chown(path, 1234, 1234);
    const box = await make({ spec: { workspace: { path } } });
    const { exec } = await runInSandbox(box, ['sh', '-c', 'pwd; echo made > file']);
    expect(exec.exit_code).toBe(0);
    expect(await readFile(join(path, 'file'), 'utf8')).toBe('made\n');
    expect((await stat(join(path, 'file'))).uid).toBe(uid);
    expect(box.name).toMatch(/^sallyport-workspace-[\w-]+-[0-9a-f]{8}$/i);
  });

  test('[O8] readonly can be read and not written', async () => {
    const { make } = await openSandboxes();
    const path = await folder();
    await writeFile(join(path, 'file'), 'there');
    await import('node:fs/promises').then(({ chmod }) => chmod(path, 0o755));
    const box = await make({ spec: { workspace: { path, mode: 'readonly' } } });
    const { exec, stdout } = await runInSandbox(box, ['sh', '-c', 'cat file; touch other']);
    expect(stdout.data).toBe('there');
    expect(exec.exit_code).not.toBe(0);
  });

  test('copy leaves the folder alone, and what exists only inside is not removed unasked', async () => {
    const { sandboxes, make } = await openSandboxes();
    const path = await folder();
    await mkdir(join(path, 'sub'));
    await writeFile(join(path, 'sub/kept'), 'kept');
    await writeFile(join(path, 'changed'), 'before');
    await writeFile(join(path, 'removed'), 'gone');
    await symlink('sub/kept', join(path, 'link'));
    const box = await make({ spec: { workspace: { path, mode: 'copy' } } });
    expect((await box.changes()).changes).toEqual([]);
    await runInSandbox(box, ['sh', '-c', 'echo after > changed; rm removed; echo new > "a\nb"']);
    await expect(box.remove({ force: false })).rejects.toMatchObject({
      code: 'sandbox_changed',
      details: { paths: ['a\nb', 'changed', 'removed'] },
    });
    await box.stop(1000);
    await expect(box.remove({ force: false })).rejects.toMatchObject({ code: 'sandbox_changed' });
    expect(await readFile(join(path, 'changed'), 'utf8')).toBe('before');
    await box.remove({ force: true });
    expect(sandboxes.list()).toEqual([]);
  });
});

describe('after a crash', () => {
  test('[A16] a command goes on, and nothing of its output or its exit is lost', async () => {
    const before = await openSandboxes();
    const box = await before.make({ spec: { name: 'survivor' } });
    const script = 'i=0; while [ $i -lt 300 ]; do echo line $i; i=$((i+1)); sleep 0.01; done; exit 7';
    const exec = await startInSandbox(box, ['sh', '-c', script], { background: true });
    const log = await exec.log();
    for await (const piece of log.read({ follow: true })) if (piece.offset > 100) break;
    await before.abandon();
    const after = await openSandboxes({ stateDir: before.stateDir });
    const again = after.sandboxes.get('survivor').getExec(exec.id);
    const { exec: end, stdout } = await again.result();
    expect(end).toMatchObject({ state: 'exited', exit_code: 7 });
    expect(stdout.data).toBe(Array.from({ length: 300 }, (_, line) => `line ${line}\n`).join(''));
    expect(after.reports).toEqual([]);
  });

  test('[A12] what a lost store knew is found again by its labels', async () => {
    const before = await openSandboxes();
    const box = await before.make({
      spec: { name: 'orphan', ...(holdsLimits ? { limits: { memory: '128m' } } : {}) },
    });
    await runInSandbox(box, ['sh', '-c', 'echo kept > ~/file']);
    await before.abandon();
    await rm(join(before.stateDir, 'sandboxes'), { recursive: true });
    const after = await openSandboxes({ stateDir: before.stateDir });
    const again = after.sandboxes.get('orphan');
    expect(again.view()).toMatchObject({ id: box.id, state: 'STOPPED' });
    await again.start();
    expect((await runInSandbox(again, ['sh', '-c', 'cat ~/file'])).stdout.data).toBe('kept\n');
  });

  test('[A12] two owners on one engine do not touch each other', async () => {
    const [one, two] = [await openSandboxes(), await openSandboxes()];
    const box = await one.make({ spec: { name: 'mine' } });
    await two.make({ spec: { name: 'mine' } });
    await two.abandon();
    const again = await openSandboxes({ stateDir: two.stateDir });
    expect(again.sandboxes.list().map(({ name }) => name)).toEqual(['mine']);
    expect((await runInSandbox(box, ['echo', 'untouched'])).stdout.data).toBe('untouched\n');
  });
});

describe('what happens outside', () => {
  test('a container that is killed is a stopped sandbox, and its command is lost', async () => {
    const { sandboxes, make, stateDir } = await openSandboxes();
    const box = await make();
    const exec = await startInSandbox(box, ['sleep', '100']);
    await killFromOutside(testEngine().connection, stateDir, box.view().container_id ?? '');
    await exec.ended;
    expect(exec.view()).toMatchObject({ state: 'lost', error: { code: 'exec_lost' } });
    await untilState(sandboxes, box, 'STOPPED');
    await box.ensureRunning();
    expect((await runInSandbox(box, ['echo', 'back'])).stdout.data).toBe('back\n');
  });

  test('[G2] a container that is taken away is made anew', async () => {
    const { sandboxes, make, stateDir } = await openSandboxes();
    const box = await make();
    const outside = await boxEngineOf(testEngine().connection, stateDir);
    await outside.remove(box.view().container_id ?? '');
    await untilState(sandboxes, box, 'FAILED');
    await box.ensureRunning();
    expect((await runInSandbox(box, ['echo', 'anew'])).stdout.data).toBe('anew\n');
  });
});
