/**
 * A sandbox that shares its uid with the host's user does not use up what the kernel counts by uid: epoll and inotify instances are
 * made by a lender with a uid of its own, and the limits of the rest leave half of it.
 */

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished } from 'vitest';
import { porterBinaryPath } from '../../src/porter/binary.ts';
import { noticeKind } from '../../src/porter/link.ts';
import type { Porter } from '../../src/porter/porter.ts';
import { temporaryFolder } from '../support/little-engine.ts';
import {
  capture,
  connectPorter,
  nativeArchitecture,
  type PorterChild,
  plainEnv,
  runIn,
  startPorter,
  Transcript,
} from '../support/porter-child.ts';
import { asRoot, fullSizes, when } from '../support/selection.ts';

const userUid = 64_801;
const lenderUid = 64_802;
const as = (uid: number): readonly string[] => [
  'setpriv',
  `--reuid=${uid}`,
  `--regid=${uid}`,
  '--clear-groups',
];
const [EMFILE, ENOSPC, EAGAIN] = [24, 28, 11];

interface Probe {
  readonly program: string;
  readonly folder: string;
}

function quotasProgram(): Probe {
  const folder = temporaryFolder();
  chmodSync(folder, 0o777);
  const program = join(folder, 'quotas');
  const source = fileURLToPath(new URL('../security/quotas.c', import.meta.url));
  execFileSync('gcc', ['-static', '-Os', '-o', program, source]);
  return { program, folder };
}

const lines = (text: string): Readonly<Record<string, number>> =>
  Object.fromEntries(
    text
      .trim()
      .split('\n')
      .map((line) => line.split(' '))
      .map(([what = '', result]) => [what, Number(result)]),
  );

/** The host's user, who is no part of the sandbox. */
function tryOutside({ program, folder }: Probe): Readonly<Record<string, number>> {
  const [command = '', ...args] = [...as(userUid), program, 'try', folder];
  return lines(execFileSync(command, args, { encoding: 'utf8' }));
}

/** Takes all that it can inside; `count errno`. */
async function hoard(porter: Porter, { program, folder }: Probe, what: string): Promise<readonly number[]> {
  const argv = [program, 'hoard', what, folder] as const;
  const { exec, stdout } = capture(porter, { argv, env: plainEnv, cwd: '/' });
  await exec.started;
  const said = new Transcript(stdout);
  await said.until('\n');
  return said.text.split(' ').map(Number);
}

function startLender(porter: PorterChild, uid: number): ChildProcess {
  const [command = '', ...args] = [...as(uid), porterBinaryPath(nativeArchitecture), 'lend'];
  const child = spawn(command, [...args, String(porter.child.pid)], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  return child;
}

interface Shared {
  readonly child: PorterChild;
  readonly porter: Porter;
  /** How often a lender was asked for. */
  readonly asked: () => number;
  readonly lenders: ChildProcess[];
}

/** As the daemon does it: a lender is started when porter asks for one. */
async function sharingUid(isProvided: () => boolean = () => true): Promise<Shared> {
  const child = startPorter(['--shared-uid', '--borrow'], as(userUid));
  const porter = await connectPorter(child);
  let asked = 0;
  const lenders: ChildProcess[] = [];
  porter.onNotice(({ kind }) => {
    if (kind !== noticeKind.lenderWanted) return;
    asked++;
    if (isProvided()) lenders.push(startLender(child, lenderUid));
  });
  return { child, porter, asked: () => asked, lenders };
}

const nothingUsed = { instance: 0, watch: 0, epoll: 0, pipe: 65536, signal: 0, queue: 0, right: 0 };

when(asRoot).describe('[N22] a porter that shares its uid', () => {
  const it = when(asRoot).it;

  it('leaves every inotify instance to the user outside, whatever its programs take', async () => {
    const probe = quotasProgram();
    const { porter } = await sharingUid();
    const [count = 0, errno] = await hoard(porter, probe, 'instances');
    expect(count).toBeGreaterThan(10);
    expect(errno).toBe(EMFILE);
    expect(tryOutside(probe)).toEqual(nothingUsed);
    // A second program of the sandbox finds none: they are counted, for another uid.
    expect(lines((await runIn(porter, [probe.program, 'try', probe.folder])).stdout)).toMatchObject({
      instance: EMFILE,
      epoll: 0,
    });
    // The same without a lender, in another sandbox of this uid.
    const alone = await connectPorter(startPorter([], as(userUid)));
    expect((await hoard(alone, probe, 'instances'))[0]).toBeGreaterThan(10);
    expect(tryOutside(probe)).toMatchObject({ instance: EMFILE });
  });

  it('leaves half of the signals and message queues', async () => {
    const probe = quotasProgram();
    const { porter } = await sharingUid();
    for (const what of ['signals', 'queues']) {
      const [count = 0, errno] = await hoard(porter, probe, what);
      expect(count).toBeGreaterThan(1);
      expect([EAGAIN, EMFILE]).toContain(errno);
    }
    expect(tryOutside(probe)).toEqual(nothingUsed);
    const { stdout } = await runIn(porter, ['bash', '-c', 'ulimit -Hi; ulimit -Hq; ulimit -Hl']);
    const alone = await connectPorter(startPorter([], as(userUid)));
    const usual = (await runIn(alone, ['bash', '-c', 'ulimit -Hi; ulimit -Hq; ulimit -Hl'])).stdout.split(
      '\n',
    );
    const [signals, queues, locked] = stdout.split('\n').map(Number);
    expect(signals).toBe(Math.floor(Number(usual[0]) / 2));
    expect(queues).toBe(Math.floor(Number(usual[1]) / 2));
    expect(locked).toBeLessThanOrEqual(4096);
    await hoard(alone, probe, 'signals');
    expect(tryOutside(probe)).toMatchObject({ signal: EAGAIN });
  });

  it('asks for one lender, and gives programs what they would have got of the kernel', async () => {
    const { program } = quotasProgram();
    const { porter, asked } = await sharingUid();
    expect((await runIn(porter, ['true'])).exitCode).toBe(0);
    expect(asked()).toBe(0);
    const inside = await runIn(porter, [program, 'flags']);
    expect(lines(inside.stdout)).toEqual(lines(execFileSync(program, ['flags'], { encoding: 'utf8' })));
    expect(asked()).toBe(1);
    const churned = await Promise.all(
      Array.from({ length: 20 }, () => runIn(porter, [program, 'churn', '100'])),
    );
    expect(churned.map(({ stdout }) => stdout)).toEqual(Array(20).fill('worked 100\n'));
    expect(asked()).toBe(1);
    // What a program left behind goes on to be served.
    const script = `(sleep 0.2; ${program} churn 3) & exit 0`;
    expect((await runIn(porter, ['sh', '-c', `${script}`])).exitCode).toBe(0);
    const later = await runIn(porter, ['sh', '-c', `${program} churn 5 & wait`]);
    expect(later.stdout).toBe('worked 5\n');
  });

  it('watches files with a borrowed inotify as well', async () => {
    const { folder, program } = quotasProgram();
    const { porter, lenders } = await sharingUid();
    for await (const { kind } of porter.files.watch(folder)) {
      expect(kind).toBe('ready');
      break;
    }
    expect(lenders).toHaveLength(1);
    expect((await runIn(porter, [program, 'churn', '1'])).stdout).toBe('worked 1\n');
  });

  it('refuses what needs a lender when none comes, and takes one that comes later', async () => {
    const { program } = quotasProgram();
    let isProvided = false;
    const { porter, asked, lenders } = await sharingUid(() => isProvided);
    const refused = await runIn(porter, [program, 'churn', '1']);
    expect(refused.stdout).toBe('worked 0\n');
    // Each of its two calls waited, and the host was asked now and then.
    expect(asked()).toBeGreaterThan(2);
    expect(asked()).toBeLessThan(20);
    isProvided = true;
    expect((await runIn(porter, [program, 'churn', '5'])).stdout).toBe('worked 5\n');
    // One that is gone is asked for again.
    const before = asked();
    const [first] = lenders;
    const gone = first === undefined ? Promise.resolve() : once(first, 'exit');
    first?.kill('SIGKILL');
    await gone;
    expect((await runIn(porter, [program, 'churn', '5'])).stdout).toBe('worked 5\n');
    expect(asked()).toBe(before + 1);
  });

  it('takes no lender of its own uid, and none where it does not share', async () => {
    const { program } = quotasProgram();
    const { child, porter } = await sharingUid(() => false);
    const [code] = await once(startLender(child, userUid), 'exit');
    expect(code).toBe(0);
    const alone = startPorter([], as(userUid));
    const other = await connectPorter(alone);
    expect(await once(startLender(alone, lenderUid), 'exit')).toEqual([0, null]);
    expect((await runIn(other, [program, 'churn', '5'])).stdout).toBe('worked 5\n');
    const waiting = runIn(porter, [program, 'churn', '1']);
    startLender(child, lenderUid);
    expect((await waiting).stdout).toBe('worked 1\n');
  });

  it('lets a program that waits for a lender be killed', async () => {
    const { program } = quotasProgram();
    const { porter } = await sharingUid(() => false);
    const { exec } = capture(porter, { argv: [program, 'churn', '1'], env: plainEnv, cwd: '/' });
    await exec.started;
    exec.kill(0);
    expect(await exec.result).toMatchObject({ killed: true, signal: 9 });
  });
});

when(asRoot, fullSizes).describe('[N22] a porter that shares its uid', () => {
  when(asRoot).it(
    'leaves every inotify and epoll watch to the user outside',
    { timeout: 600_000 },
    async () => {
      const probe = quotasProgram();
      const { porter } = await sharingUid();
      for (const what of ['watches', 'epoll']) {
        const [count = 0, errno] = await hoard(porter, probe, what);
        expect(count).toBeGreaterThan(1000);
        expect(errno).toBe(ENOSPC);
      }
      expect(tryOutside(probe)).toEqual(nothingUsed);
    },
  );
});
