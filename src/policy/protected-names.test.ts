import { describe, expect, it } from 'vitest';
import { isGitPath, isProtectedPath } from './protected-names.ts';

const isProtected = (path: string): boolean => isProtectedPath(Buffer.from(path));

describe('what a host executes unasked', () => {
  it.each([
    '.git/hooks/pre-commit',
    '.envrc',
    'sub/.vscode/tasks.json',
    '.GIT/config',
    '.g\u200cit/config',
    'sallyport.yaml',
    'a/Dockerfile.sallyport',
    '.devcontainer.json',
    'opencode.jsonc',
    'lefthook-local.yml',
    'lefthook-ci.toml',
    '.lefthook.toml',
    'mise.local.toml',
    'sub/x.code-workspace',
    '.config/mise/config.toml',
    '.yarn/releases/yarn.cjs',
    '.hg/hgrc',
    '.git./config',
    'GIT~1/config',
    '.vscode /tasks.json',
    'VSCODE~1/tasks.json',
    'MCP~1.JSO',
    '.git::$INDEX_ALLOCATION/config',
    '.Envrc. .',
    ...'opencode.json .opencode/x lefthook.yml lefthook mise.toml .mise/config.toml .windsurf/x .kiro/x .roo/x'.split(
      ' ',
    ),
    ...'.amazonq/x .junie/x .qwen/x .crush.json .vs/x .fleet/run.json x.sublime-project .exrc .nvim.lua'.split(
      ' ',
    ),
    ...'.dir-locals.el .yarnrc.yml .pnpmfile.cjs .npmrc .husky/pre-commit .pre-commit-config.yaml'.split(' '),
    ...'rust-toolchain.toml sub/.tool-versions .helix/languages.toml .pnp.cjs .Rprofile .irbrc'.split(' '),
  ])('is known by its name: %j', (path) => {
    expect(isProtected(path)).toBe(true);
  });

  it.each([
    'src/main.ts',
    '.gitignore',
    'git/hooks',
    'package.json',
    'Makefile',
    'AGENTS.md',
    '.github/workflows/ci.yml',
    'a.envrc',
    'misery.txt',
    'releases/x',
    '.yarn/cache/x',
    '.hg/store/data',
    'legit~1',
    'x~1.txt',
  ])('is not %j', (path) => {
    expect(isProtected(path)).toBe(false);
  });

  it('has the repository itself as a part that no patch can hold', () => {
    expect(isGitPath(Buffer.from('sub/.git/HEAD'))).toBe(true);
    expect(isGitPath(Buffer.from('.envrc'))).toBe(false);
  });
});
