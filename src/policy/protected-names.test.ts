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
  ])('is known by its name: %j', (path) => {
    expect(isProtected(path)).toBe(true);
  });

  it.each(['src/main.ts', '.gitignore', 'git/hooks', 'package.json', '.github/workflows/ci.yml', 'a.envrc'])(
    'is not %j',
    (path) => {
      expect(isProtected(path)).toBe(false);
    },
  );

  it('has the repository itself as a part that no patch can hold', () => {
    expect(isGitPath(Buffer.from('sub/.git/HEAD'))).toBe(true);
    expect(isGitPath(Buffer.from('.envrc'))).toBe(false);
  });
});
