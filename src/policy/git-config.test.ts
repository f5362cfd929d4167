import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { namedByEntries, parseGitConfig } from './git-config.ts';

const named = (text: string) => namedByEntries(parseGitConfig(text)).map(({ path, as }) => `${as} ${path}`);

/** What git itself reads in it. */
function byGit(text: string): readonly { name: string; value: string }[] {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-git-config-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, 'config'), text);
  const out = execFileSync('git', ['config', '--file', join(folder, 'config'), '--list', '-z'], {
    encoding: 'utf8',
  });
  return out
    .split('\0')
    .filter((row) => row !== '')
    .map((row) => {
      const [name = '', ...value] = row.split('\n');
      return { name, value: value.length === 0 ? 'true' : value.join('\n') };
    });
}

describe('[N5] the configuration of git', () => {
  it.each([
    ['[core] hooksPath = .githooks'],
    ['[core]\n\thooksPath = .githooks ; ours\n'],
    ['[CORE]\nHOOKSPATH=".git" hooks\n'],
    ['[core] # first\n  hooksPath = "a # b" c   # end\n'],
    ['[core]\n  hooksPath = one\\\ntwo\n'],
    ['[core]\n  hooksPath = "x\\"y\\\\z\\tt"\n'],
    ['[core]\nfsmonitor\nbare = false\n'],
    ['[include]\npath = ../.gitconfig\n[includeIf "gitdir:~/work/"] path = work.inc'],
    ['[filter "my \\"best\\" one"] clean = ./tools/clean --x\n[filter.Old] smudge = y'],
    ['\uFEFF[core]\r\nhooksPath = windows\r\n[alias]\r\nx = !./run\r\n'],
    ['; comment\n# another\n[a]\n[b]k=v\n'],
  ])('is read as git reads it: %j', (text) => {
    expect(parseGitConfig(text)).toEqual(byGit(text));
  });

  it('names hooks, more configuration and the programs of command lines', () => {
    expect(named('[core] hooksPath = .githooks ; ours')).toEqual(['hooks .githooks']);
    expect(named('[include] path = ../.gitconfig')).toEqual(['configuration ../.gitconfig']);
    expect(named('[includeIf "onbranch:x"]\npath = inc')).toEqual(['configuration inc']);
    expect(named('[core] fsmonitor = tools/fsm')).toEqual(['program tools/fsm']);
    expect(named('[filter "x"] clean = "node tools/clean.js --in=\'a b/c\' %f"')).toEqual([
      'program tools/clean.js',
      'program b/c',
    ]);
    expect(named('[merge "x"] driver = python3 merge.py %A')).toEqual(['program merge.py']);
    expect(named('[credential "https://x.example"] helper = ./c')).toEqual(['program ./c']);
  });

  it('names nothing for values that git does not run unasked', () => {
    expect(named('[alias] st = "!sh ./tools/st"')).toEqual([]);
    expect(named('[core] pager = less -R\neditor = code --wait')).toEqual([]);
    expect(named('[remote "origin"] url = ../other\n[branch "main"] merge = refs/heads/main')).toEqual([]);
    expect(named('[core] fsmonitor = true\n[user] name = ./x')).toEqual([]);
  });

  it('takes what git refuses for an entry rather than for nothing', () => {
    expect(named('[core]\n!\nhooksPath = x')).toEqual(['hooks x']);
    expect(named('[core\nhooksPath = x')).toEqual(['hooks x']);
    expect(named('[core] hooksPath = "x')).toEqual(['hooks x']);
  });
});
