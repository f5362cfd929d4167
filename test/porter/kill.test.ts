/** Kill means dead, and deadlines hold: whatever a program does to get away. */

import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { OutputQueue } from '../../src/porter/output-queue.ts';
import { queueSink } from '../../src/porter/output-sink.ts';
import {
  type Captured,
  capture,
  collect,
  connectPorter,
  descendants,
  greet,
  openRelay,
  type PorterChild,
  plainEnv,
  runIn,
  startPorter,
  Transcript,
} from '../support/porter-child.ts';
import { until } from '../support/until.ts';

interface Running extends Captured {
  readonly child: PorterChild;
  readonly pid: number;
}

/** A shell script that says `ready` when it has set everything up. */
async function start(script: string): Promise<Running> {
  const child = startPorter();
  const porter = await connectPorter(child);
  const captured = capture(porter, { argv: ['bash', '-c', script], env: plainEnv, cwd: '/', stdin: true });
  await captured.exec.started;
  await captured.exec.write(Buffer.from('go\n'));
  await new Transcript(captured.stdout).until('ready');
  captured.stderr.discard();
  return { ...captured, child, pid: child.child.pid ?? 0 };
}

const evaders: ReadonlyArray<readonly [string, string, number]> = [
  ['a child', 'sleep 1000 & echo ready; wait', 2],
  ['a double fork', '( ( sleep 1000 & ) & ); echo ready; sleep 1000', 2],
  ['a session of its own', 'setsid sleep 1000 & echo ready; sleep 1000', 2],
  ['a session of its own and no environment', 'env -i setsid sleep 1000 & echo ready; sleep 1000', 2],
  ['nohup', 'nohup sleep 1000 >/dev/null 2>&1 & echo ready; sleep 1000', 2],
  ['ignoring TERM', 'trap "" TERM INT HUP; sleep 1000 & echo ready; while :; do wait; done', 2],
  ['a stopped child', 'sleep 1000 & kill -STOP $!; echo ready; sleep 1000', 2],
  [
    'a daemon that outlived its shell',
    'setsid sh -c "trap : TERM; setsid sleep 1000 & echo ready; sleep 1000" & sleep 1000',
    3,
  ],
];

describe('kill', () => {
  it.each(evaders)('[G5] reaches %s', async (_name, script, processes) => {
    const { exec, pid } = await start(script);
    exec.kill(0);
    const result = await exec.result;
    expect(result).toMatchObject({ signal: 9, killed: true, timedOut: false });
    expect(result.killedProcesses).toBeGreaterThanOrEqual(processes);
    expect(descendants(pid)).toEqual([]);
  });

  it.each(evaders)('[G5] with a grace, then reaches %s', async (_name, script) => {
    const { exec, pid } = await start(script);
    exec.kill(200);
    expect(await exec.result).toMatchObject({ killed: true });
    expect(descendants(pid)).toEqual([]);
  });

  it('[G5] reaches processes that fork all the time', async () => {
    const forker = [
      'import os, signal, time',
      // Or that may have been enough, and nobody is left to be counted.
      'signal.signal(signal.SIGTERM, signal.SIG_IGN)',
      // Should it ever escape, it does not run for ever.
      'end = time.time() + 120',
      'for _ in range(20):',
      '  if os.fork() == 0:',
      '    os.setsid()',
      '    while time.time() < end:',
      '      if os.fork(): os._exit(0)',
      'print("ready", flush=True)',
      'while True: os.wait()',
    ].join('\n');
    const { exec, pid } = await start(`exec python3 -c '${forker}'`);
    exec.kill(0);
    const result = await exec.result;
    expect(result.killedProcesses).toBeGreaterThan(10);
    expect(descendants(pid)).toEqual([]);
  });

  it('ends at once when TERM was enough, however long the grace', async () => {
    const { exec } = await start('echo ready; exec sleep 1000');
    const started = performance.now();
    exec.kill(60_000);
    expect(await exec.result).toMatchObject({ signal: 15, killed: true, killedProcesses: 0 });
    expect(performance.now() - started).toBeLessThan(30_000);
  });

  it('reaches what a program left behind, also after its exec was forgotten', async () => {
    const child = startPorter();
    const porter = await connectPorter(child);
    const { exec, stdout } = capture(porter, {
      argv: ['bash', '-c', 'setsid sleep 1000 & exit 0'],
      env: plainEnv,
      cwd: '/',
    });
    stdout.discard();
    expect(await exec.result).toMatchObject({ exitCode: 0, leftBehind: 1 });
    expect(await porter.list()).toMatchObject([{ state: 'lingering' }]);
    exec.forget();
    exec.kill(0);
    while ((await porter.list()).length > 0);
    expect(descendants(child.child.pid ?? 0)).toEqual([]);
  });
});

describe('a supervisor', () => {
  it('that is killed from inside takes all that it supervised with it, and that is told', async () => {
    const child = startPorter();
    const porter = await connectPorter(child);
    const notices: number[] = [];
    porter.onNotice(({ kind }) => void notices.push(kind));
    const result = await runIn(porter, [
      'bash',
      '-c',
      'setsid sleep 1000 & (setsid sleep 1000 &) ; kill -9 $PPID; sleep 1000',
    ]);
    expect(result).toMatchObject({ supervisorLost: true, signal: 9 });
    expect(result.killedProcesses).toBeGreaterThanOrEqual(2);
    await porter.ping();
    expect(notices).toEqual([2]);
    expect(descendants(child.child.pid ?? 0)).toEqual([]);
    expect((await runIn(porter, ['echo', 'on'])).stdout).toBe('on\n');
  });

  it('that is killed by a process its program left behind takes that with it too', async () => {
    const child = startPorter();
    const porter = await connectPorter(child);
    const lost = new Promise<number>((resolve) => porter.onNotice(({ kind }) => resolve(kind)));
    const script = 'supervisor=$PPID; setsid bash -c "read go <&3; kill -9 $supervisor; sleep 1000" & exit 0';
    const { exec, stdout } = capture(porter, {
      argv: ['bash', '-c', `exec 3<&0; ${script}`],
      env: plainEnv,
      cwd: '/',
      stdin: true,
    });
    stdout.discard();
    await exec.started;
    await exec.write(Buffer.from('go\\n'));
    expect(await exec.result).toMatchObject({ exitCode: 0 });
    exec.endStdin();
    expect(await lost).toBe(2);
    expect(descendants(child.child.pid ?? 0)).toEqual([]);
  });

  it('that is stopped from inside does not keep kill from working', async () => {
    const { exec, pid } = await start(
      'read go; kill -STOP $PPID; setsid sleep 1000 & echo ready; sleep 1000',
    );
    exec.kill(0);
    expect(await exec.result).toMatchObject({ signal: 9, killed: true });
    expect(descendants(pid)).toEqual([]);
  });

  it('is not taken in by a program that asks to be traced', async () => {
    const porter = await connectPorter();
    const traceme =
      'import ctypes,os,signal\nctypes.CDLL(None).ptrace(0,0,0,0)\nsignal.signal(10,lambda *_: print("caught"))\nos.kill(os.getpid(),10)\nprint("end",flush=True)\nos._exit(4)';
    expect(await runIn(porter, ['python3', '-c', traceme])).toMatchObject({
      stdout: 'caught\nend\n',
      exitCode: 4,
    });
  });
});

describe('[G5] a deadline', () => {
  it('sends TERM to the whole tree, and says so', async () => {
    const porter = await connectPorter();
    const script =
      'bash -c "trap \'echo child; exit\' TERM; echo up; while :; do sleep 0.01; done" & trap "echo main; wait; exit 3" TERM; wait; wait';
    const result = await runIn(porter, ['bash', '-c', script], { deadlineMs: 300, graceMs: 5_000 });
    expect(result).toMatchObject({ timedOut: true, killed: false, exitCode: 3 });
    expect(result.stdout.split('\n').sort()).toEqual(['', 'child', 'main', 'up']);
  });

  it('kills what is left after the grace', async () => {
    const child = startPorter();
    const porter = await connectPorter(child);
    const started = performance.now();
    const result = await runIn(
      porter,
      ['bash', '-c', 'trap "" TERM; setsid sleep 1000 & while :; do sleep 0.01; done'],
      {
        deadlineMs: 200,
        graceMs: 300,
      },
    );
    const tookMs = performance.now() - started;
    expect(result).toMatchObject({ timedOut: true, signal: 9 });
    expect(tookMs).toBeGreaterThan(490);
    expect(tookMs).toBeLessThan(10_000);
    expect(descendants(child.child.pid ?? 0)).toEqual([]);
  });

  it("kills at once without a grace, and does not take porter's own", async () => {
    const porter = await connectPorter();
    const script = 'trap "" TERM; while :; do sleep 0.01; done';
    const started = performance.now();
    const result = await runIn(porter, ['bash', '-c', script], { deadlineMs: 100, graceMs: 0 });
    expect(result).toMatchObject({ timedOut: true, signal: 9 });
    // Of its own porter has 5 s.
    expect(performance.now() - started).toBeLessThan(4500);
  });

  it('does not end what exits in time', async () => {
    const porter = await connectPorter();
    expect(await runIn(porter, ['true'], { deadlineMs: 10_000 })).toMatchObject({
      timedOut: false,
      exitCode: 0,
    });
  });

  it('holds while nobody is connected', async () => {
    const child = startPorter([]);
    const first = await connectPorter(child);
    const { exec } = capture(first, {
      argv: ['bash', '-c', 'trap "" TERM; sleep 1000 & while :; do sleep 0.01; done'],
      env: plainEnv,
      cwd: '/',
      deadlineMs: 200,
      graceMs: 100,
    });
    await exec.started;
    first.close();
    const pid = child.child.pid ?? 0;
    await until(() => descendants(pid).length === 0);
    const second = await greet(openRelay(child).stream, 2);
    const [known] = await second.list();
    if (known === undefined) throw new Error('the exec is not known');
    const resumed = second.resume(
      known,
      { stdout: 0, stderr: 0 },
      queueSink(new OutputQueue(), new OutputQueue()),
    );
    expect(await resumed.result).toMatchObject({ timedOut: true, signal: 9 });
  });

  it('holds while every processor is taken', async () => {
    const child = startPorter();
    const porter = await connectPorter(child);
    const script = 'for i in $(seq 60); do (while :; do :; done) & done; wait';
    const started = performance.now();
    const result = await runIn(porter, ['bash', '-c', script], { deadlineMs: 500, graceMs: 200 });
    expect(result).toMatchObject({ timedOut: true });
    expect(performance.now() - started).toBeLessThan(30_000);
    expect(descendants(child.child.pid ?? 0)).toEqual([]);
  });

  it('does not count the time in which porter was stopped', async () => {
    const child = startPorter();
    const porter = await connectPorter(child);
    const { exec, stdout } = capture(porter, {
      argv: ['bash', '-c', 'read line; echo "$line"'],
      env: plainEnv,
      cwd: '/',
      stdin: true,
      deadlineMs: 2_000,
      graceMs: 100,
    });
    await exec.started;
    const stopped = Date.now();
    child.child.kill('SIGSTOP');
    const elsewhere = await connectPorter();
    await runIn(elsewhere, ['sleep', '3']);
    child.child.kill('SIGCONT');
    expect(Date.now() - stopped).toBeGreaterThan(3_000);
    await exec.write(Buffer.from('in time\n'));
    expect(await collect(stdout)).toBe('in time\n');
    expect(await exec.result).toMatchObject({ timedOut: false, exitCode: 0 });
  });
});

describe('a porter that is not the first process and is killed', () => {
  it('takes with it all that it started, also what left its session and ignores TERM', async () => {
    const child = startPorter([]);
    const porter = await connectPorter(child);
    const script =
      'trap "" TERM; sleep 1000 & setsid sh -c "trap \'\' TERM; env -i setsid /bin/sleep 1000 & sleep 1000" & echo ready; wait';
    const trees = [1, 2].map(() => capture(porter, { argv: ['sh', '-c', script], env: plainEnv, cwd: '/' }));
    await Promise.all(trees.map(({ stdout }) => new Transcript(stdout).until('ready')));
    const pid = child.child.pid ?? 0;
    await until(() => descendants(pid).length >= 10);
    const all = [...descendants(pid), ...supervisors(pid)];
    expect(all).toHaveLength(12);
    child.child.kill('SIGKILL');
    await until(() => !all.some(isAlive));
  });

  it('and a signal from a program is not taken for its death', async () => {
    const porter = await connectPorter();
    expect(await runIn(porter, ['sh', '-c', 'kill -TERM $PPID; echo on'])).toMatchObject({
      exitCode: 0,
      stdout: 'on\n',
      supervisorLost: false,
    });
  });
});

const supervisors = (root: number): readonly number[] =>
  readFileSync(`/proc/${root}/task/${root}/children`, 'utf8').trim().split(' ').map(Number);

function isAlive(pid: number): boolean {
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}
