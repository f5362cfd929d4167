import { describe, expect, it } from 'vitest';
import type { HostPlaces } from './forbidden-sources.ts';
import { worktreeMounts } from './git-worktree.ts';

const places: HostPlaces = {
  platform: 'linux',
  homes: ['/home/me'],
  stateDirs: [],
  engineSockets: [],
  programs: [],
};
const look = (commonDir: string) => ({
  commonDir,
  gitDir: `${commonDir}/worktrees/x`,
  written: ['objects', 'refs'],
});

describe('worktreeMounts', () => {
  it('has the repository read-only at its own path, but for what a commit writes', () => {
    const provided = worktreeMounts(look('/home/me/repo/.git'), true, places);
    expect('mounts' in provided && provided.mounts.map(({ target, writable }) => [target, writable])).toEqual(
      [
        ['/home/me/repo/.git', false],
        ['/home/me/repo/.git/objects', true],
        ['/home/me/repo/.git/refs', true],
        ['/home/me/repo/.git/worktrees/x', true],
        ['/home/me/repo/.git/worktrees/x/commondir', false],
        ['/home/me/repo/.git/worktrees/x/gitdir', false],
        ['/home/me/repo/.git/worktrees/x/config.worktree', false],
        ['/home/me/repo/.git/worktrees/x/modules', false],
      ],
    );
  });

  it('has nothing writable where the workspace is read-only', () => {
    expect(worktreeMounts(look('/home/me/repo/.git'), false, places)).toEqual({
      mounts: [{ source: '/home/me/repo/.git', target: '/home/me/repo/.git', writable: false }],
      stubs: [],
    });
  });

  it('[O4] provides nothing from a place that no sandbox may see, and says which', () => {
    for (const place of ['/etc/repo', '/home/me/.ssh/repo', '/var/lib/docker/x'])
      expect(worktreeMounts(look(place), true, places)).toMatchObject({
        because: expect.stringContaining(place),
      });
  });
});
