/** `sally agent --each --worktree` at a terminal: how many at a time, the table as it goes, the summary, and Ctrl-C. */

import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { describe, expect, test } from 'vitest';
import { readTasks, taskBranch } from '../../src/agents/fan-out.ts';
import { branchSlug } from '../../src/policy/agent-name.ts';
import { git, gitBox, homeWithAgent, repository } from '../support/agent-repository.ts';
import { sally } from '../support/cli.ts';
import { temporaryFolder } from '../support/little-engine.ts';
import { isRoot } from '../support/requires.ts';
import { ctrlC, hasTerminal, type OnTerminal, sallyOnTerminal } from '../support/terminal.ts';

interface Place {
  readonly branch: string;
  readonly folder: string;
}

/** The tasks of a file, and the worktrees that they get. */
function tasksFor(cwd: string, lines: readonly string[]) {
  const file = join(temporaryFolder(), 'tasks.txt');
  writeFileSync(file, `# what is to be done\n\n${lines.join('\n')}\n`);
  const places = readTasks(readFileSync(file, 'utf8'), file).map((task): Place => {
    const branch = taskBranch('shell', task);
    return { branch, folder: join(dirname(cwd), `${basename(cwd)}.worktrees`, branchSlug(branch)) };
  });
  // No sandbox works as root, and what root makes is root's. Everybody else gets them made.
  if (isRoot) {
    for (const { branch, folder } of places) git(cwd, 'worktree', 'add', '--quiet', '-b', branch, folder);
    execFileSync('chown', ['-R', '1234:1234', cwd, ...places.map(({ folder }) => folder)]);
  }
  return { file, places };
}

const start = (cwd: string, file: string, jobs: number): Promise<OnTerminal> =>
  sallyOnTerminal(['agent', 'shell', '--each', file, '-j', String(jobs), '--worktree', ...gitBox()], {
    env: homeWithAgent(),
    cwd,
    size: { rows: 40, columns: 110 },
  });

/** What is on the screen since it was last taken back. */
const table = (screen: OnTerminal): string =>
  stripVTControlCharacters(screen.raw().split('\x1b[0J').at(-1) ?? '').replaceAll('\r', '');

async function workplaces(places: readonly Place[]): Promise<readonly string[]> {
  const { sandboxes } = JSON.parse((await sally(['agent', 'ls', '--json'])).stdout) as {
    sandboxes: { workspace?: { path: string } }[];
  };
  const all = sandboxes.map(({ workspace }) => workspace?.path ?? '');
  return places.map(({ folder }) => folder).filter((folder) => all.includes(folder));
}

const hold = 'touch begun; until [ -e go ]; do sleep 0.05; done; rm go begun';
const begun = ({ folder }: Place): boolean => existsSync(join(folder, 'begun'));
const letGo = ({ folder }: Place): void => writeFileSync(join(folder, 'go'), '');
const soon = { timeout: 120_000, interval: 50 };

describe.runIf(hasTerminal)('sally agent --each --worktree at a terminal', () => {
  test('runs as many at a time as it may, shows what goes on, and one that fails ends no other', async () => {
    const cwd = repository();
    // The table counts all that was printed, and git 2.47 complains about a lock here (docs/live-workspace.md).
    const commit = 'echo 1 > one; git add one; git commit -qm one 2>/dev/null; echo 12345';
    const { file, places } = tasksFor(cwd, [`${hold}; ${commit}`, `${hold}; exit 7`, 'echo 3 > three', hold]);
    const [one, two, three, four] = places as [Place, Place, Place, Place];
    const screen = await start(cwd, file, 2);

    await expect.poll(() => [one, two].map(begun), soon).toEqual([true, true]);
    await expect
      .poll(() => table(screen), soon)
      .toMatch(/# +TASK +STATE [\s\S]*1 +touch.* running [\s\S]*2 +touch.* running [\s\S]*3 .* waiting /);
    expect(await workplaces(places)).toEqual([one.folder, two.folder]);

    letGo(two);
    await expect.poll(() => begun(four), soon).toBe(true);
    await expect
      .poll(() => table(screen), soon)
      .toMatch(/1 .* running [\s\S]*4 .* running [\s\S]*2 .* failed +7 [\s\S]*3 .* done +0 +1 /);
    expect(await workplaces(places)).toEqual([one.folder, four.folder]);
    letGo(one);
    letGo(four);

    expect((await screen.result).code).toBe(1);
    const summary = table(screen);
    const where = ({ folder, branch }: Place): string => `${folder} (${branch})`;
    for (const [place, row] of [
      [one, /^1 .* done +0 +1 +[\d.]+s +6 ?B +(.*)$/m],
      [two, /^2 .* failed +7 +0 +[\d.]+s +0 ?B? +(.*)$/m],
      [three, /^3 +echo 3 > three +done +0 +1 +[\d.]+s +0 ?B? +(.*)$/m],
      [four, /^4 .* done +0 +0 +[\d.]+s +0 ?B? +(.*)$/m],
    ] as const)
      expect(row.exec(summary)?.[1], summary).toBe(where(place));
    expect(summary).toContain('sally: 3 done, 1 failed, 0 cancelled');
    expect(await workplaces(places)).toEqual([]);
    const safe = ['-c', 'safe.directory=*'];
    expect(git(cwd, ...safe, 'log', '--format=%s', one.branch)).toBe('one\nfirst');
    expect(readFileSync(join(three.folder, 'three'), 'utf8')).toBe('3\n');
    expect(existsSync(join(cwd, 'one'))).toBe(false);
  });

  test('at Ctrl-C ends what runs, begins nothing more, and says what was done and what was not', async () => {
    const cwd = repository();
    const { file, places } = tasksFor(cwd, [
      'git commit -q --allow-empty -m whole',
      'echo x > loose; touch begun; exec sleep 1000',
      'touch never',
    ]);
    const [one, two, three] = places as [Place, Place, Place];
    const screen = await start(cwd, file, 1);
    await expect.poll(() => begun(two), soon).toBe(true);
    screen.type(ctrlC);

    expect((await screen.result).code).toBe(130);
    const summary = table(screen);
    expect(summary).toMatch(/^1 .* done +0 +1 /m);
    const half = /^2 .* cancelled +- +- +[\d.]+s +- +ended in the middle, 2 changed: (.*)$/m.exec(summary);
    expect(half?.[1], summary).toBe(`${two.folder} (${two.branch})`);
    expect(summary).toMatch(/^3 +touch never +cancelled +- +- +- +- +not begun$/m);
    expect(summary).toContain('sally: 1 done, 0 failed, 2 cancelled');
    expect(await workplaces(places)).toEqual([]);
    expect(readFileSync(join(two.folder, 'loose'), 'utf8')).toBe('x\n');
    expect(existsSync(join(three.folder, 'never'))).toBe(false);
    expect(git(cwd, '-c', 'safe.directory=*', 'log', '-1', '--format=%s', one.branch)).toBe('whole');
  });
});
