import { describe, expect, it } from 'vitest';
import type { NamedByGit } from './git-config.ts';
import type { FoundKind } from './held-paths.ts';
import { pathsToLookAt, protectWorkspace } from './protected-paths.ts';

const repository: Readonly<Record<string, FoundKind>> = {
  '.git': 'directory',
  '.git/HEAD': 'file',
  '.git/config': 'file',
  '.git/hooks': 'directory',
};

function protect(
  found: Readonly<Record<string, FoundKind>>,
  wish: { readonly protect?: readonly string[]; readonly unprotected?: readonly string[] } = {},
  named: readonly NamedByGit[] = [],
) {
  const { protect: more = [], unprotected = [] } = wish;
  const executed = Object.keys(found).filter((name) => name.endsWith('.toml'));
  return protectWorkspace(
    { source: '/p', target: '/w' },
    { protect: more, unprotected },
    { found, named, executed },
  );
}

const modes = (mounts: readonly { readonly target: string; readonly writable: boolean }[]) =>
  Object.fromEntries(mounts.map(({ target, writable }) => [target, writable ? 'rw' : 'ro']));
const stubbed = (stubs: readonly { readonly path: string }[]) => stubs.map(({ path }) => path);
const refusal = (field: string, advice: string) =>
  expect.objectContaining({
    code: 'refused_by_policy',
    details: expect.objectContaining({ field }),
    advice: expect.stringContaining(advice),
  });

describe('protectWorkspace', () => {
  it('[A2] holds what git obeys in a repository, and leaves the rest of it writable', () => {
    const { mounts, stubs } = protect(repository);
    expect(modes(mounts)).toMatchObject({
      '/w/.git': 'rw',
      '/w/.git/hooks': 'ro',
      '/w/.git/config': 'ro',
      '/w/.git/config.worktree': 'ro',
      '/w/.git/info': 'ro',
      '/w/.git/commondir': 'ro',
      '/w/.envrc': 'ro',
      '/w/.vscode': 'ro',
      '/w/.mcp.json': 'ro',
      '/w/.claude': 'ro',
      '/w/sallyport.yaml': 'ro',
      '/w/Dockerfile.sallyport': 'ro',
    });
    expect(mounts.some(({ target }) => target === '/w/.git/modules')).toBe(false);
    expect(stubs).toContainEqual({ path: '/p/.git/commondir', content: '.\n' });
    expect(stubbed(stubs)).not.toContain('/p/.git');
  });

  it('makes the mounts of parents before those of their children', () => {
    const targets = protect(repository, { protect: ['a/b/c'] }).mounts.map(({ target }) => target);
    for (const [index, target] of targets.entries()) {
      const parent = target.slice(0, target.lastIndexOf('/'));
      expect(parent === '/w' || targets.indexOf(parent) < index, target).toBe(true);
    }
    expect(targets).toContain('/w/a/b');
  });

  it('holds the place of a repository where there is none, and the pointer of a worktree', () => {
    expect(modes(protect({}).mounts)).toMatchObject({ '/w/.git': 'ro' });
    expect(stubbed(protect({}).stubs)).toContain('/p/.git');
    // Left by a crash, or made by hand: git sees no repository in it.
    expect(modes(protect({ '.git': 'directory' }).mounts)).toMatchObject({ '/w/.git': 'ro' });
    const worktree = protect({ '.git': 'file' });
    expect(modes(worktree.mounts)).toMatchObject({ '/w/.git': 'ro' });
    expect(worktree.mounts.some(({ target }) => target.startsWith('/w/.git/'))).toBe(false);
  });

  it('holds what is there of what does nothing when it is new', () => {
    expect(modes(protect({ '.husky': 'directory', 'mise.toml': 'file' }).mounts)).toMatchObject({
      '/w/.husky': 'ro',
      '/w/mise.toml': 'ro',
    });
    expect(modes(protect({}).mounts)).not.toHaveProperty(['/w/.husky']);
  });

  it('keeps the root from becoming a git directory, and takes HEAD last because git then refuses that word', () => {
    expect(stubbed(protect(repository).stubs).slice(0, 2)).toEqual(['/p/commondir', '/p/refs']);
    const refs = { ...repository, refs: 'directory' } as const;
    expect(modes(protect(refs).mounts)).toMatchObject({ '/w/commondir': 'ro', '/w/objects': 'ro' });
    expect(modes(protect(refs).mounts)).not.toHaveProperty(['/w/refs']);
    const both = { ...refs, objects: 'directory' } as const;
    expect(modes(protect(both).mounts)).toMatchObject({ '/w/commondir': 'ro', '/w/HEAD': 'ro' });
  });

  it('refuses a root that git takes for a git directory, unless all is left writable', () => {
    const bare = { HEAD: 'file', objects: 'directory', refs: 'directory' } as const;
    for (const found of [bare, { ...bare, HEAD: 'symlink' }, { commondir: 'file' }] as const) {
      expect(() => protect(found)).toThrow(refusal('workspace.path', 'mode: copy'));
      expect(() => protect(found, { unprotected: ['all'] })).not.toThrow();
    }
    expect(() => protect({ HEAD: 'file', objects: 'directory' })).not.toThrow();
  });

  it('holds hooks that the configuration of git names, with their parents as mount points', () => {
    const found = { ...repository, tools: 'directory', 'tools/hooks': 'directory' } as const;
    expect(modes(protect(found, {}, [{ path: 'tools/hooks', as: 'hooks' }]).mounts)).toMatchObject({
      '/w/tools': 'rw',
      '/w/tools/hooks': 'ro',
    });
    for (const left of ['all', '.git']) {
      const { mounts } = protect(found, { unprotected: [left] }, [{ path: 'tools/hooks', as: 'hooks' }]);
      expect(mounts.some(({ target }) => target.startsWith('/w/tools'))).toBe(false);
    }
  });

  it('holds what was asked for, also where it is missing, and what is inside of it once', () => {
    const { mounts, stubs } = protect({ '.git': 'file' }, { protect: ['./ci//run/', '.git', 'ci'] });
    expect(modes(mounts)).toMatchObject({ '/w/ci': 'ro', '/w/.git': 'ro' });
    expect(modes(mounts)).not.toHaveProperty(['/w/ci/run']);
    expect(stubbed(stubs)).toContain('/p/ci');
  });

  it('[N5] holds what the configuration of git names, also hooks and configuration that are missing', () => {
    const { mounts, stubs } = protect({ ...repository, tools: 'directory', 'tools/clean.sh': 'file' }, {}, [
      { path: '.githooks', as: 'hooks' },
      { path: '.gitconfig', as: 'configuration' },
      { path: 'tools/clean.sh', as: 'program' },
      { path: 'gone.sh', as: 'program' },
    ]);
    expect(modes(mounts)).toMatchObject({
      '/w/.githooks': 'ro',
      '/w/.gitconfig': 'ro',
      '/w/tools': 'rw',
      '/w/tools/clean.sh': 'ro',
    });
    expect(modes(mounts)).not.toHaveProperty('/w/gone.sh');
    expect(stubs).toContainEqual({ path: '/p/.githooks' });
    expect(stubs).toContainEqual({ path: '/p/.gitconfig', content: '' });
  });

  it('leaves what was named writable, and says so; refuses a name that it does not know', () => {
    const some = protect(repository, { unprotected: ['.vscode', '.git/hooks'] });
    expect(some.unprotected).toEqual(['.vscode', '.git/hooks']);
    expect(modes(some.mounts)).not.toHaveProperty(['/w/.vscode']);
    expect(modes(some.mounts)).toMatchObject({ '/w/.git': 'rw', '/w/.git/config': 'ro' });
    const git = protect(repository, { unprotected: ['.git'] });
    expect(git.mounts.some(({ target }) => target.startsWith('/w/.git/'))).toBe(false);
    expect(protect(repository, { unprotected: ['all'] })).toMatchObject({ mounts: [], stubs: [] });
    expect(() => protect({}, { unprotected: ['package.json'] })).toThrow(
      refusal('workspace.dangerously_unprotected', '.vscode'),
    );
  });

  it('refuses a link in the place of what is held, and names the ways out', () => {
    for (const found of [{ '.git': 'symlink' }, { '.claude': 'symlink' }, { '.envrc': 'other' }] as const) {
      for (const way of ['mode: copy', 'dangerously_unprotected'])
        expect(() => protect(found)).toThrow(refusal('workspace.path', way));
    }
    expect(() => protect({ '.git': 'symlink' }, { unprotected: ['.git'] })).not.toThrow();
    expect(() => protect({ ci: 'symlink' }, { protect: ['ci/run'] })).toThrow(
      refusal('workspace.path', 'copy'),
    );
  });

  it('has everything looked at that it asks for', () => {
    expect(pathsToLookAt(['a/b/c'])).toEqual(
      expect.arrayContaining(['a', 'a/b', 'a/b/c', '.git/HEAD', '.envrc']),
    );
  });
});
