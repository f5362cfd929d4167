import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { commandExists, requirement } from '../../test/support/requires.ts';
import { type BranchEntry, makeBranch } from './git-branch.ts';

const environment = {
  PATH: process.env['PATH'] ?? '',
  HOME: '/nonexistent',
  GIT_AUTHOR_NAME: 'a',
  GIT_AUTHOR_EMAIL: 'a@b',
  GIT_COMMITTER_NAME: 'a',
  GIT_COMMITTER_EMAIL: 'a@b',
};

function repository(): { readonly folder: string; readonly git: (...args: string[]) => string } {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-git-branch-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const git = (...args: string[]): string =>
    execFileSync('git', args, { cwd: folder, env: environment, encoding: 'utf8' }).trim();
  git('init', '--quiet');
  writeFileSync(join(folder, '.gitignore'), 'ignored\n');
  git('add', '-A');
  git('commit', '--quiet', '-m', 'first');
  return { folder, git };
}

function entry(path: string, sizeBytes: number): BranchEntry & { readonly reads: () => number } {
  let reads = 0;
  const content = (): readonly Buffer[] => {
    reads++;
    return [Buffer.alloc(sizeBytes, 'x')];
  };
  return { path: Buffer.from(path), now: { mode: '100644', sizeBytes, content }, reads: () => reads };
}

const limits = { fileBytes: 10, totalBytes: 25 };

describe.runIf(requirement('git', commandExists('git')))('[N5] a commit of files from inside', () => {
  it('has a limit for each and for all, leaves out what is beyond by name, and has the rest', async () => {
    const { folder, git } = repository();
    const sizes: readonly (readonly [string, number])[] = [
      ['ignored', 10],
      ['a', 10],
      ['b', 11],
      ['c', 10],
      ['d', 6],
      ['e', 5],
      ['f', 1],
    ];
    const entries = sizes.map(([path, bytes]) => entry(path, bytes));
    const made = await makeBranch(folder, environment, { branch: 'box', message: 'x', entries, limits });
    expect(made.leftOut.map(({ path, why }) => [path.toString(), why])).toEqual([
      ['ignored', 'git ignores it'],
      ['b', expect.stringMatching(/^it has more than .*sally cp/)],
      ['d', expect.stringMatching(/^with it the commit has more than .*sally cp/)],
      ['f', expect.stringMatching(/^with it the commit has more than .*sally cp/)],
    ]);
    expect(git('ls-tree', '--name-only', 'box').split('\n')).toEqual(['.gitignore', 'a', 'c', 'e']);
    expect(git('show', 'box:e')).toBe('xxxxx');
    expect(entries.map(({ reads }) => reads())).toEqual([0, 1, 0, 1, 0, 1, 0]);
  });

  it('is not made where nothing of it is left', async () => {
    const { folder, git } = repository();
    const entries = [entry('ignored', 1), entry('large', 11)];
    const made = await makeBranch(folder, environment, { branch: 'box', message: 'x', entries, limits });
    expect(made).toMatchObject({ written: [], leftOut: [{}, {}] });
    expect(made.commit).toBeUndefined();
    expect(git('branch', '--list', 'box')).toBe('');
  });

  it('may have more files than wait at a time', async () => {
    const { folder, git } = repository();
    const entries = Array.from({ length: 1005 }, (_, index) => entry(`f${index}`, index % 7));
    const made = await makeBranch(folder, environment, { branch: 'box', message: 'x', entries });
    expect(made.written).toHaveLength(1005);
    expect(git('ls-tree', '-l', 'box', 'f1004')).toMatch(/ 3\tf1004$/);
  });
});
