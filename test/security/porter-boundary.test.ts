/** What a program in a sandbox tries on porter and on the kernel, as the sandbox's own user. Each refusal has its control. */

import { describe, expect, it, onTestFinished } from 'vitest';
import { execInContainer } from '../../src/engines/docker/containers/exec.ts';
import { inspectContainer } from '../../src/engines/docker/containers/inspect.ts';
import { stopContainer } from '../../src/engines/docker/containers/stop.ts';
import type { Porter } from '../../src/porter/porter.ts';
import { startBox, type TestBox } from '../support/box.ts';
import { testEngine } from '../support/engine.ts';
import {
  allowedCalls,
  callsOutside,
  compileProbe,
  EACCES,
  EBADF,
  EPERM,
  expectControls,
  type Findings,
  perhapsRefusedByTheEngine,
  probe,
  putProbe,
  readFindings,
  refusedCalls,
  startedByEngine,
} from '../support/kernel-probe.ts';
import { temporaryFolder } from '../support/little-engine.ts';
import {
  capture,
  connectPorter,
  greet,
  plainEnv,
  runIn,
  startPorter,
  testToken,
} from '../support/porter-child.ts';
import { isRoot } from '../support/requires.ts';
import { asRoot, when } from '../support/selection.ts';
import { until } from '../support/until.ts';

async function withProbe(): Promise<TestBox & { readonly porter: Porter }> {
  const box = await startBox();
  await putProbe(box.porter);
  return box;
}

/** What the filter alone refuses, if it is porter who is named. (The files of /proc are refused to an ordinary user.) */
const callsThatNameAProcess = [
  'signal-0',
  'signal-continue',
  'tkill',
  'tgkill',
  'prlimit',
  'renice',
  'io-priority',
  'scheduler',
  'affinity',
  'owner-of-signals',
  'read-memory',
  'ptrace',
];
describe('a program in a sandbox', () => {
  it('can do nothing to the first process that it can do to its own child', async () => {
    const { porter } = await withProbe();
    const onChild = await probe(porter, 'child');
    const onPorter = await probe(porter, '1');
    expect(Object.keys(onChild).length).toBeGreaterThan(20);
    const { 'read-memory': readMemory, ...others } = onChild;
    expect(perhapsRefusedByTheEngine).toContain(readMemory);
    expect(others).toEqual(Object.fromEntries(Object.keys(others).map((name) => [name, 0])));
    expect(Object.keys(onPorter)).toEqual(Object.keys(onChild));
    for (const [name, errno] of Object.entries(onPorter)) {
      // EBADF: of writing to what could not be opened.
      expect(name === 'oom-score' ? [EBADF] : [EPERM, EACCES], name).toContain(errno);
    }
  });

  it('can do nothing to its supervisor either, but end it', async () => {
    const { porter } = await withProbe();
    const onChild = await probe(porter, 'child');
    const onSupervisor = readFindings((await runIn(porter, ['bash', '-c', '/tmp/probe $PPID; true'])).stdout);
    for (const name of ['list-fd', 'open-fd', 'open-mem', 'maps', 'environ', 'ptrace']) {
      expect([EPERM, EACCES], name).toContain(onSupervisor[name]);
      expect(onChild, name).toHaveProperty(name, 0);
    }
    expect(onSupervisor).toHaveProperty('signal-continue', 0);
  });

  it('[N5] can do nothing to a relay, which porter’s filter does not hold', async () => {
    const { porter, engine, id } = await withProbe();
    const relay = await engine.openRelay(id);
    onTestFinished(() => void relay.destroy());
    let found = '';
    await until(async () => {
      const { stdout } = await runIn(porter, ['bash', '-c', `${startedByEngine} && /tmp/probe $found`]);
      found = stdout;
      return found !== '';
    });
    const onRelay = readFindings(found);
    const onChild = await probe(porter, 'child');
    expect(Object.keys(onRelay)).toEqual(Object.keys(onChild));
    // The kernel lets everybody name a receiver of signals, and sends none that its sender may not send himself.
    const { 'owner-of-signals': _, 'oom-score': score, ...acts } = onRelay;
    expect(score).toBe(EBADF);
    for (const [name, errno] of Object.entries(acts)) {
      expect([EPERM, EACCES], name).toContain(errno);
      expect(name === 'read-memory' ? perhapsRefusedByTheEngine : [0], `control of ${name}`).toContain(
        onChild[name],
      );
    }
  });

  it('gets ordinary sockets and none that lead elsewhere, and no call that makes or enters worlds', async () => {
    const { porter } = await withProbe();
    expect(await probe(porter, 'calls', '/tmp')).toEqual({ ...refusedCalls, ...allowedCalls });
    // An ordinary user may do too little outside for a comparison.
    if (isRoot) expectControls(callsOutside());
    const threads =
      'import _thread\nlock=_thread.allocate_lock()\nlock.acquire()\n_thread.start_new_thread(lock.release,())\nlock.acquire()\nprint("thread")';
    expect((await runIn(porter, ['python3', '-c', threads])).stdout).toBe('thread\n');
  });

  when(asRoot).it('cannot name porter in any call, also as root and in no box', async () => {
    const started = startPorter();
    const porter = await connectPorter(started);
    const program = compileProbe();
    const act = async (whom: string): Promise<Findings> =>
      readFindings((await runIn(porter, [program, whom])).stdout);
    const onChild = await act('child');
    const onPorter = await act(String(started.child.pid));
    for (const name of callsThatNameAProcess) {
      expect(onPorter, name).toHaveProperty(name, EPERM);
      expect(onChild, name).toHaveProperty(name, 0);
    }
  });

  when(asRoot).it('is refused the same by porter’s filter alone, also as root and in no box', async () => {
    const porter = await connectPorter();
    const { stdout } = await runIn(porter, [compileProbe(), 'calls', temporaryFolder()]);
    expect(readFindings(stdout)).toEqual({ ...refusedCalls, ...allowedCalls });
    expectControls(callsOutside());
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
    const { porter, engine, id } = await withProbe();
    const forms = [testToken.toString('hex'), testToken.toString('base64')];
    const script = 'cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr "\\0" "\\n"';
    const { stdout } = await runIn(porter, ['bash', '-c', script], {
      env: { ...plainEnv, MARK: 'found-me' },
    });
    expect(stdout).toContain('MARK=found-me');
    for (const form of forms) expect(stdout).not.toContain(form);
    expect(await probe(porter, 'knock')).toEqual({ connect: 0, answer: 0 });
    // What an engine starts there is answered.
    expect((await greet(await engine.openRelay(id), 2)).welcome.pid).toBe(1);
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
    const door = await execInContainer(testEngine().connection, id, {
      argv: ['bash', '-c', 'kill -TERM 1'],
    });
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
    const stopped = stopContainer(connection, id, 60);
    expect(await polite.exec.result).toMatchObject({ signal: 15 });
    await stopped;
    expect(performance.now() - started).toBeLessThan(30_000);
    expect(await inspectContainer(connection, id)).toMatchObject({ running: false, exitCode: 143 });
  });
});
