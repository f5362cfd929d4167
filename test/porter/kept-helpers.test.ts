/** Supervisors and file workers that porter keeps for a moment: they pass nothing on, and nothing depends on them. */

import { readFileSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import type { ExecRequest } from '../../src/porter/exec.ts';
import type { Porter } from '../../src/porter/porter.ts';
import {
  connectPorter,
  type Outcome,
  type PorterChild,
  runIn,
  startPorter,
} from '../support/porter-child.ts';
import { filesInFolder } from '../support/porter-files.ts';

/** Everything that a program inherits, but for its supervisor's pid in the first line. */
const tellInherited = [
  'echo $PPID',
  'ulimit -Ha; ulimit -Sa; umask; pwd; env | sort; nice; id',
  'echo /proc/self/fd/*; cat /proc/self/oom_score_adj',
  'grep -E "^(Sig[BIC]|Seccomp|NoNew|Cpus_allowed_list)" /proc/self/status',
].join('\n');

const lookAround = async (porter: Porter): Promise<Outcome> => {
  const seen = await runIn(porter, ['bash', '-c', tellInherited]);
  // Until porter knows that nothing is left of it, its supervisor is not free.
  while ((await porter.list()).length > 0);
  return seen;
};

const supervisorOf = ({ stdout }: Outcome): number => Number(stdout.split('\n')[0]);
const inherited = ({ stdout }: Outcome): string => stdout.slice(stdout.indexOf('\n'));

function helpers({ child }: PorterChild, name: string): readonly number[] {
  const children = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8');
  return children
    .split(' ')
    .filter((pid) => pid !== '')
    .map(Number)
    .filter((pid) => nameOf(pid) === name);
}

function nameOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/comm`, 'utf8').trim();
  } catch {
    return '';
  }
}

/** Repeats `act` until a helper of that name waits, as one does for a moment after each task. */
async function waiting(child: PorterChild, name: string, act: () => Promise<unknown>): Promise<number> {
  for (;;) {
    await act();
    const [pid] = helpers(child, name);
    if (pid !== undefined) return pid;
  }
}

describe('a supervisor', () => {
  it('serves one program after the other, and each finds the same as the first', async () => {
    const porter = await connectPorter();
    const first = await lookAround(porter);
    const odd: Partial<ExecRequest> = {
      cwd: '/tmp',
      env: { PATH: '/usr/bin:/bin', LEFT: 'over' },
      limits: { openFiles: 50, fileBytes: 1024 },
      stdin: true,
    };
    let before = first;
    for (;;) {
      await runIn(porter, ['bash', '-c', 'umask 0777; exec 9</dev/zero; trap "" TERM; renice 5 $$'], odd);
      const after = await lookAround(porter);
      expect(inherited(after)).toBe(inherited(first));
      if (supervisorOf(after) === supervisorOf(before)) break;
      before = after;
    }
  });

  it.each([
    ['limits', 'import resource; resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE, (40, 40))'],
    ['priority', 'os.setpriority(os.PRIO_PROCESS, os.getppid(), 15)'],
    ['policy', 'os.sched_setscheduler(os.getppid(), os.SCHED_BATCH, os.sched_param(0))'],
    ['processors', 'os.sched_setaffinity(os.getppid(), list(os.sched_getaffinity(0))[:1])'],
  ])('whose %s a program has changed passes them on to none', async (_name, act) => {
    const porter = await connectPorter();
    const first = await lookAround(porter);
    const script = `import os\n${act}\nprint(os.getppid())`;
    const changed = await runIn(porter, ['python3', '-c', script]);
    expect(changed).toMatchObject({ exitCode: 0, stderr: '' });
    while ((await porter.list()).length > 0);
    const after = await lookAround(porter);
    expect(inherited(after)).toBe(inherited(first));
    expect(supervisorOf(after)).not.toBe(supervisorOf(changed));
  });

  it.each(['SIGKILL', 'SIGSTOP'] as const)('that got %s while it waited holds up nobody', async (signal) => {
    const child = startPorter();
    const porter = await connectPorter(child);
    const pid = await waiting(child, 'porter-exec', () => lookAround(porter));
    process.kill(pid, signal);
    while (signal === 'SIGKILL' && helpers(child, 'porter-exec').includes(pid)) await porter.ping();
    expect(await runIn(porter, ['echo', 'still there'])).toMatchObject({
      stdout: 'still there\n',
      exitCode: 0,
      supervisorLost: false,
    });
  });

  it('leaves when nothing more is asked', async () => {
    const child = startPorter();
    const porter = await connectPorter(child);
    await waiting(child, 'porter-exec', () => lookAround(porter));
    while (helpers(child, 'porter-exec').length > 0) await porter.ping();
    expect(await runIn(porter, ['true'])).toMatchObject({ exitCode: 0 });
  });
});

describe('a file worker', () => {
  it('goes on after operations that failed before they took their data', async () => {
    const { files, at } = await filesInFolder();
    const content = Buffer.alloc(40_000, 'x');
    // More often than one worker serves.
    for (let round = 0; round < 120; round++) {
      await expect(files.write(at('no', 'such'), content)).rejects.toMatchObject({ code: 'file_not_found' });
      await files.write(at('file'), Buffer.from(`round ${round}`));
      expect(await files.readAll(at('file'), 100)).toEqual(Buffer.from(`round ${round}`));
    }
  });

  it.each(['SIGKILL', 'SIGSTOP'] as const)('that got %s while it waited holds up nobody', async (signal) => {
    const { files, child, porter, at } = await filesInFolder();
    await writeFile(at('file'), 'old');
    const pid = await waiting(child, 'porter-file', () => files.stat(at('file')));
    process.kill(pid, signal);
    while (signal === 'SIGKILL' && helpers(child, 'porter-file').includes(pid)) await porter.ping();
    await files.write(at('file'), Buffer.from('new'));
    expect(await readFile(at('file'), 'utf8')).toBe('new');
  });

  it('leaves when nothing more is asked', async () => {
    const { files, child, porter } = await filesInFolder();
    await waiting(child, 'porter-file', () => files.stat('/'));
    while (helpers(child, 'porter-file').length > 0) await porter.ping();
    expect(await files.stat('/')).toMatchObject({ kind: 'directory' });
  });
});
