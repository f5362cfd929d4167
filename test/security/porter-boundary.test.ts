/** What a program in a sandbox tries on porter and on the kernel, as the sandbox's own user. Each refusal has its control. */

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { execInContainer } from '../../src/engines/docker/containers/exec.ts';
import { inspectContainer } from '../../src/engines/docker/containers/inspect.ts';
import { stopContainer } from '../../src/engines/docker/containers/stop.ts';
import type { Porter } from '../../src/porter/porter.ts';
import { startBox } from '../support/box.ts';
import { testEngine } from '../support/engine.ts';
import { temporaryFolder } from '../support/little-engine.ts';
import { capture, plainEnv, runIn, testToken } from '../support/porter-child.ts';

const EPERM = 1;
const EACCES = 13;
const ENOSYS = 38;
const EAFNOSUPPORT = 97;

function compileProbe(): Buffer {
  const out = join(temporaryFolder(), 'probe');
  const source = fileURLToPath(new URL('./probe.c', import.meta.url));
  execFileSync('gcc', ['-static', '-Os', '-o', out, source]);
  return readFileSync(out);
}

async function withProbe(): Promise<{ readonly porter: Porter; readonly id: string }> {
  const { porter, id } = await startBox();
  await runIn(porter, ['bash', '-c', 'cat > /tmp/probe && chmod 755 /tmp/probe'], { input: compileProbe() });
  return { porter, id };
}

async function probe(porter: Porter, what: string): Promise<Readonly<Record<string, number>>> {
  const { stdout } = await runIn(porter, ['/tmp/probe', what]);
  return Object.fromEntries(
    stdout
      .trim()
      .split('\n')
      .map((line) => line.split(' '))
      .map(([name = '', errno = '']) => [name, Number(errno)]),
  );
}

describe('a program in a sandbox', () => {
  it('can do nothing to the first process that it can do to its own child', async () => {
    const { porter } = await withProbe();
    const onChild = await probe(porter, 'child');
    const onPorter = await probe(porter, '1');
    expect(Object.keys(onChild).length).toBeGreaterThan(12);
    expect(onChild).toEqual(Object.fromEntries(Object.keys(onChild).map((name) => [name, 0])));
    for (const [name, errno] of Object.entries(onPorter)) {
      expect([EPERM, EACCES, 9], name).toContain(errno);
    }
    expect((await runIn(porter, ['ls', '/proc/1/fd'])).exitCode).not.toBe(0);
    expect((await runIn(porter, ['ls', '/proc/self/fd'])).exitCode).toBe(0);
  });

  it('can do nothing to its supervisor either, but end it', async () => {
    const { porter } = await withProbe();
    const result = await runIn(porter, ['bash', '-c', '/tmp/probe $PPID; true']);
    for (const name of ['open-fd', 'open-mem', 'environ', 'ptrace']) {
      expect(result.stdout).toMatch(new RegExp(`^${name} (${EPERM}|${EACCES})$`, 'm'));
    }
  });

  it('gets ordinary sockets and none that lead elsewhere, and no call that makes or enters worlds', async () => {
    const { porter } = await withProbe();
    expect(await probe(porter, 'calls')).toEqual({
      'socket-unix': 0,
      'socket-inet': 0,
      'socket-inet6': 0,
      'socket-netlink-route': 0,
      'socket-netlink-audit': EAFNOSUPPORT,
      'socket-vsock': EAFNOSUPPORT,
      'socket-alg': EAFNOSUPPORT,
      'socket-packet': EAFNOSUPPORT,
      io_uring: EPERM,
      keyctl: EPERM,
      bpf: EPERM,
      perf: EPERM,
      userfaultfd: EPERM,
      unshare: EPERM,
      mount: EPERM,
      handle: EPERM,
      clone3: ENOSYS,
      'clone-namespace': EPERM,
      'renice-user': EPERM,
      'renice-self': 0,
      'owner-by-pointer': EPERM,
      'owner-self': 0,
      ...(process.arch === 'x64' ? { x32: ENOSYS } : {}),
    });
    const threads =
      'import _thread\nlock=_thread.allocate_lock()\nlock.acquire()\n_thread.start_new_thread(lock.release,())\nlock.acquire()\nprint("thread")';
    expect((await runIn(porter, ['python3', '-c', threads])).stdout).toBe('thread\n');
  });

  it('has no capability, no way to a new privilege, and two filters', async () => {
    const { porter } = await startBox();
    const { stdout } = await runIn(porter, ['cat', '/proc/self/status']);
    for (const line of [
      /^CapEff:\t0+$/m,
      /^CapBnd:\t0+$/m,
      /^NoNewPrivs:\t1$/m,
      /^Seccomp:\t2$/m,
      /^Seccomp_filters:\t2$/m,
    ]) {
      expect(stdout).toMatch(line);
    }
  });

  it('finds the token nowhere, and nothing of it is answered by the relay socket', async () => {
    const { porter } = await withProbe();
    const forms = [testToken.toString('hex'), testToken.toString('base64')];
    const script = 'cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr "\\0" "\\n"';
    const { stdout } = await runIn(porter, ['bash', '-c', script], {
      env: { ...plainEnv, MARK: 'found-me' },
    });
    expect(stdout).toContain('MARK=found-me');
    for (const form of forms) expect(stdout).not.toContain(form);
    expect(await probe(porter, 'knock')).toEqual({ connect: 0, answer: 0 });
  });
});

describe('porter', () => {
  it('gives what it runs a higher OOM score than its own', async () => {
    const { porter } = await startBox();
    const { stdout } = await runIn(porter, ['cat', '/proc/self/oom_score_adj', '/proc/1/oom_score_adj']);
    const [program, first] = stdout.trim().split('\n').map(Number);
    expect(program).toBe(500);
    expect(first).toBeLessThan(500);
  });
});

describe('TERM', () => {
  it('from inside is ignored and told', async () => {
    const { porter, id } = await startBox();
    const noticed = new Promise<number>((resolve) => porter.onNotice(({ kind }) => resolve(kind)));
    // By the engine, because a program that porter started is not even allowed to send it.
    const door = await execInContainer(testEngine().connection, id, ['bash', '-c', 'kill -TERM 1']);
    door.resume();
    expect(await noticed).toBe(1);
    expect((await runIn(porter, ['echo', 'on'])).stdout).toBe('on\n');
  });

  it('from the engine ends the sandbox within its grace, and every exit is told before', async () => {
    const { porter, id } = await startBox();
    const { connection } = testEngine();
    const polite = capture(porter, { argv: ['sleep', '1000'], env: plainEnv, cwd: '/' });
    await polite.exec.started;
    const started = performance.now();
    const stopped = stopContainer(connection, id, 10);
    expect(await polite.exec.result).toMatchObject({ signal: 15 });
    await stopped;
    expect(performance.now() - started).toBeLessThan(5_000);
    expect(await inspectContainer(connection, id)).toMatchObject({ running: false, exitCode: 143 });
  });
});
