import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { namedByGit } from './git-named.ts';

function folder(): string {
  const made = realpathSync(mkdtempSync(join(tmpdir(), 'sallyport-named-')));
  onTestFinished(() => rmSync(made, { recursive: true, force: true }));
  return made;
}

function write(path: string, text = ''): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

function repository(config: string, at = folder()): string {
  execFileSync('git', ['init', '--quiet', at]);
  write(join(at, '.git/config'), config);
  return at;
}

const named = async (at: string) =>
  Object.fromEntries((await namedByGit(at)).map(({ path, as }) => [path, as]));

describe('[N5] what the configuration of git names', () => {
  let home = '';
  beforeEach(() => {
    home = realpathSync(mkdtempSync(join(tmpdir(), 'sallyport-home-')));
    vi.stubEnv('HOME', home);
  });
  afterEach(() => {
    vi.unstubAllEnvs();
    rmSync(home, { recursive: true, force: true });
  });

  it.each([
    '[core] hooksPath = .githooks',
    '[core]\nhooksPath = .githooks ; ours',
    '[core]\nhooksPath = ".git""hooks"',
  ])('is found however it is written: %j', async (config) => {
    expect(await named(repository(config))).toEqual({ '.githooks': 'hooks' });
  });

  it('is found in what is included, also by what the user includes', async () => {
    const at = repository('[include] path = ../.gitconfig');
    write(join(at, '.gitconfig'), '[includeIf "gitdir:/nowhere/"] path = tools/more');
    write(join(at, 'tools/more'), '[core]\nhooksPath = tools/hooks');
    write(join(home, '.gitconfig'), '[include] path = work\n[include] path = ~/other');
    write(join(home, 'work'), '[filter "x"] clean = ./clean.sh %f');
    write(join(home, 'other'), '[core] fsmonitor = missing/program');
    write(join(at, 'clean.sh'));
    expect(await named(at)).toEqual({
      '.gitconfig': 'configuration',
      'tools/more': 'configuration',
      'tools/hooks': 'hooks',
      'clean.sh': 'program',
    });
  });

  it('is that of the user, of this worktree, and of a repository above the folder', async () => {
    const at = repository('');
    write(join(home, '.config/git/config'), '[core] hooksPath = .githooks');
    expect(await named(at)).toEqual({ '.githooks': 'hooks' });
    write(join(at, '.git/config.worktree'), '[core] hooksPath = packages/a/hooks');
    mkdirSync(join(at, 'packages/a/.git'), { recursive: true });
    expect(await named(join(at, 'packages/a'))).toEqual({ hooks: 'hooks' });
  });

  it('is that of the repository of a worktree', async () => {
    const at = repository('[user]\nname = x\nemail = x@x.invalid\n[core]\nhooksPath = .githooks\n');
    execFileSync('git', ['-C', at, 'commit', '--quiet', '--allow-empty', '--no-verify', '-m', 'x']);
    const tree = join(folder(), 'tree');
    execFileSync('git', ['-C', at, 'worktree', 'add', '--quiet', tree]);
    expect(await named(tree)).toEqual({ '.githooks': 'hooks' });
  });

  it('is the whole repository to which .git points, where that is in the folder', async () => {
    const at = folder();
    execFileSync('git', ['init', '--quiet', `--separate-git-dir=${join(at, 'elsewhere')}`, at]);
    expect(await named(at)).toEqual({ elsewhere: 'repository' });
  });

  it('is found by an absolute path over a link, and not where it leads out or is no program', async () => {
    const at = repository('');
    const link = join(folder(), 'link');
    symlinkSync(at, link);
    mkdirSync(join(at, 'src'));
    write(
      join(at, '.git/config'),
      `[core]\nhooksPath = ${link}/deep/hooks\n[diff]\nexternal = src/ /bin/true ../out.sh\n[include] path = /etc/hosts`,
    );
    expect(await named(at)).toEqual({ 'deep/hooks': 'hooks' });
  });

  it('is nothing in a folder that belongs to no repository', async () => {
    write(join(home, '.gitconfig'), '[core] hooksPath = .githooks');
    expect(await named(folder())).toEqual({});
  });
});
