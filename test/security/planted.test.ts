/**
 * A sandbox with a live workspace leaves behind what git on the host takes for a repository. Git really runs on the host, in the same
 * words, after a sandbox as it is by default and after one that was told to leave everything writable, where the program runs.
 */

import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { deferred } from '../../src/lib/deferred.ts';
import type { WorkspaceScanView } from '../../src/protocol/views.ts';
import type { Sandbox } from '../../src/sandboxes/sandbox.ts';
import { temporaryFolder } from '../support/little-engine.ts';
import { isRoot } from '../support/requires.ts';
import { openSandboxes, runInSandbox, type TestSandboxes } from '../support/sandboxes.ts';

const owner = isRoot ? 1234 : (process.getuid?.() ?? -1);
const asOwner = isRoot ? { uid: owner, gid: owner } : {};
const env = { PATH: process.env['PATH'] ?? '', HOME: '/nonexistent', GIT_CONFIG_NOSYSTEM: '1' };
const who = ['-c', 'user.name=Host', '-c', 'user.email=host@example.invalid'];

function workspace(): string {
  const folder = temporaryFolder();
  if (isRoot) chownSync(folder, owner, owner);
  return folder;
}

const git = (folder: string, ...args: string[]): string =>
  execFileSync('git', [...who, ...args], { cwd: folder, env, encoding: 'utf8', stdio: 'pipe', ...asOwner });

/** Whatever comes of it: git may say that there is no repository. */
const gitStatus = (folder: string): void =>
  void spawnSync('git', ['status'], { cwd: folder, env, stdio: 'ignore', ...asOwner });

function repository(): string {
  const folder = workspace();
  git(folder, 'init', '--quiet', '--initial-branch=main');
  git(folder, 'commit', '--quiet', '--allow-empty', '--message=first');
  return folder;
}

const sh = async (box: Sandbox, script: string): Promise<string> =>
  (await runInSandbox(box, ['sh', '-c', script])).output.data;

const live = (path: string, more: Record<string, unknown> = {}) => ({
  spec: { workspace: { path, ...more } },
});
const open = { dangerously_unprotected: ['all'] };

/** A git directory in the working folder, whose configuration has the host run a program. */
const gitDirectory = (marker: string): string =>
  `mkdir -p objects refs/heads; echo 'ref: refs/heads/main' > HEAD; printf '[core]\\n repositoryformatversion = 0\\n bare = false\\n worktree = .\\n fsmonitor = "touch ${marker}; false"\\n' > config`;

const notes = async ({ sandboxes }: TestSandboxes, code: string): Promise<string[]> => {
  const messages: string[] = [];
  for await (const event of sandboxes.events.follow(0, new AbortController().signal)) {
    if (event.type === 'sandbox.note' && event.code === code) messages.push(event.message);
    if (event.sequence === sandboxes.events.sequence) break;
  }
  return messages;
};

const planted = (scan: WorkspaceScanView | undefined): Record<string, string> =>
  Object.fromEntries((scan?.planted ?? []).map(({ path, kind, how }) => [path, `${kind}, ${how}`]));

describe('[N5] the root of a live workspace', () => {
  test.each([
    ['a repository', repository, 'mv .git/HEAD .git/HEAD.away'],
    ['a folder that is no repository', workspace, 'true'],
    [
      'a repository with own folders objects and refs',
      () => {
        const folder = repository();
        for (const name of ['objects', 'refs']) {
          mkdirSync(join(folder, name));
          if (isRoot) chownSync(join(folder, name), owner, owner);
        }
        return folder;
      },
      'mv .git/HEAD .git/HEAD.away',
    ],
  ])(
    'does not become a git directory that the host obeys: %s; without protection it does',
    async (_what, make, before) => {
      const world = await openSandboxes();
      const trial = async (more: Record<string, unknown>) => {
        const folder = make();
        const marker = join(workspace(), 'ran');
        const box = await world.make(live(folder, more));
        await sh(box, `${before}; ${gitDirectory(marker)}`);
        gitStatus(folder);
        const whileItRuns = existsSync(marker);
        await box.stop(0);
        gitStatus(folder);
        return { whileItRuns, afterwards: existsSync(marker) };
      };
      expect(await trial({})).toEqual({ whileItRuns: false, afterwards: false });
      expect(await trial(open)).toEqual({ whileItRuns: true, afterwards: true });
    },
  );

  test('leaves git as it is: HEAD is still a word for the last commit, and nothing is untracked', async () => {
    const world = await openSandboxes();
    const folder = repository();
    const box = await world.make(live(folder));
    expect(git(folder, 'log', '--format=%s', 'HEAD')).toBe('first\n');
    expect(git(folder, 'diff', 'HEAD')).toBe('');
    expect(git(folder, 'status', '--porcelain')).toBe('');
    await box.stop(0);
    expect(readdirSync(folder)).toEqual(['.git']);
  });

  test('that is a git directory already is refused before anything is made', async () => {
    const { make, sandboxes } = await openSandboxes();
    const bare = workspace();
    git(bare, 'init', '--quiet', '--bare');
    await expect(make(live(bare))).rejects.toMatchObject({
      code: 'refused_by_policy',
      details: expect.objectContaining({ field: 'workspace.path', path: 'HEAD' }),
    });
    expect(sandboxes.list()).toEqual([]);
    await make(live(bare, open));
  });

  test('has an event and a failed row where .git is no repository any more', async () => {
    const world = await openSandboxes();
    const box = await world.make(live(repository()));
    expect((await box.verify()).ok).toBe(true);
    await sh(box, 'echo nothing > .git/HEAD');
    const { ok, checks } = await box.verify();
    expect(ok).toBe(false);
    expect(checks).toContainEqual(
      expect.objectContaining({ name: 'workspace .git/HEAD', status: 'failed', found: 'invalid HEAD, new' }),
    );
    expect((await notes(world, 'workspace_planted'))[0]).toContain('.git/HEAD');
    await sh(box, "echo 'ref: refs/heads/main' > .git/HEAD");
    expect((await box.verify()).ok).toBe(true);
  });
});

describe('[N5] names that the host executes', () => {
  test('are read-only in a live workspace where they are there, by pattern and in other forms; without protection not', async () => {
    const { make } = await openSandboxes();
    const files = [
      'mise.local.toml',
      'lefthook-local.yml',
      '.npmrc',
      'a.code-workspace',
      '.opencode/x',
      '.VSCode/x',
    ];
    const trial = async (more: Record<string, unknown>): Promise<string> => {
      const folder = workspace();
      for (const file of [...files, 'Makefile']) {
        mkdirSync(join(folder, file, '..'), { recursive: true });
        writeFileSync(join(folder, file), 'own');
      }
      if (isRoot) execFileSync('chown', ['-R', `${owner}:${owner}`, folder]);
      const box = await make(live(folder, more));
      const act = `for f in ${files.join(' ')} Makefile; do (echo x > $f) 2>/dev/null && echo $f; done`;
      return await sh(box, act);
    };
    expect(await trial({})).toBe('Makefile\n');
    expect(await trial(open)).toBe([...files, 'Makefile', ''].join('\n'));
    expect(await trial({ dangerously_unprotected: ['.npmrc'] })).toBe('.npmrc\nMakefile\n');
  });
});

describe('[N5] the scan of a live workspace', () => {
  test('finds git directories, pointers, operations and names that appear, and not those that were there', async () => {
    const world = await openSandboxes();
    const folder = repository();
    for (const name of ['old', 'changed']) {
      mkdirSync(join(folder, name));
      if (isRoot) chownSync(join(folder, name), owner, owner);
      git(join(folder, name), 'init', '--quiet');
    }
    mkdirSync(join(folder, 'sub'));
    writeFileSync(join(folder, 'sub/.envrc'), 'true');
    if (isRoot) chownSync(join(folder, 'sub'), owner, owner);
    const box = await world.make(live(folder));
    expect(await box.scan()).toEqual({ finished: true, planted: [] });
    await sh(
      box,
      [
        'cp -R old new',
        'mkdir -p a/bare && cd a/bare && mkdir objects refs && echo x > HEAD && cd ../..',
        'mkdir -p a/led && echo x > a/led/HEAD && echo ../bare > a/led/commondir',
        'mkdir -p pointer && echo gitdir: ../a/bare > pointer/.git',
        'echo "[core] fsmonitor = x" >> changed/.git/config',
        'mkdir -p .git/rebase-merge .git/sequencer .git/modules/m/objects .git/modules/m/refs',
        'echo x > .git/modules/m/HEAD',
        'mkdir -p .git/worktrees/w && echo x > .git/worktrees/w/HEAD && echo ../.. > .git/worktrees/w/commondir',
        'echo x > mise.toml; echo x > x.code-workspace; mkdir .opencode "sub/.vscode "; echo x > sub/lefthook.yml',
        'mkdir -p node_modules/x/.vscode node_modules/x/.git && cp -R old/.git/. node_modules/x/.git',
        'echo x > package.json; echo x > AGENTS.md; echo x > Makefile',
      ].join('\n'),
    );
    expect(planted(await box.scan())).toEqual({
      'new/.git': 'git directory, new',
      'a/bare': 'git directory, new',
      'a/led': 'git directory, new',
      'pointer/.git': 'git pointer, new',
      'changed/.git': 'git directory, changed',
      '.git/rebase-merge': 'git operation, new',
      '.git/sequencer': 'git operation, new',
      '.git/modules/m': 'git directory, new',
      '.git/worktrees/w': 'git directory, new',
      'mise.toml': 'name, new',
      'x.code-workspace': 'name, new',
      '.opencode': 'name, new',
      'sub/.vscode ': 'name, new',
      'sub/lefthook.yml': 'name, new',
      'node_modules/x/.git': 'git directory, new',
    });
    const told = await notes(world, 'workspace_planted');
    expect(told).toHaveLength(1);
    await box.stop(0);
    // A stop looks again, and has nothing new to say.
    expect(await notes(world, 'workspace_planted')).toEqual(told);
  });

  test('finds an operation that is planted in the repository of a worktree', async () => {
    const world = await openSandboxes();
    const main = repository();
    const path = join(workspace(), 'tree');
    git(main, 'worktree', 'add', '--quiet', '-b', 'side', path);
    const gitDir = join(main, '.git/worktrees/tree');
    const box = await world.make(live(path));
    expect(planted(await box.scan())).toEqual({});
    const ran = join(workspace(), 'ran');
    await sh(
      box,
      `cd ${gitDir} && mkdir rebase-merge && cd rebase-merge && echo 'exec touch ${ran}' > git-rebase-todo && git=$(cat ${main}/.git/refs/heads/side) && for f in onto orig-head; do echo $git > $f; done; echo refs/heads/side > head-name; : > interactive; echo 1 > msgnum; echo 1 > end`,
    );
    expect(planted(await box.scan())).toEqual({ [`${gitDir}/rebase-merge`]: 'git operation, new' });
    expect((await box.verify()).ok).toBe(false);
    // That is what it would have done.
    git(path, 'rebase', '--continue');
    expect(existsSync(ran)).toBe(true);
  });

  test('compares with the beginning also in the next daemon', async () => {
    const first = await openSandboxes();
    const folder = repository();
    mkdirSync(join(folder, 'sub'));
    if (isRoot) chownSync(join(folder, 'sub'), owner, owner);
    git(join(folder, 'sub'), 'init', '--quiet');
    const box = await first.make(live(folder));
    await sh(box, 'echo x > .npmrc');
    await first.abandon();
    const next = await openSandboxes({ stateDir: first.stateDir });
    expect(planted(await next.sandboxes.get(box.id).scan())).toEqual({ '.npmrc': 'name, new' });
  });

  test('tells of what a stop finds, and of nothing for a folder that may be written to as a whole', async () => {
    const world = await openSandboxes();
    const box = await world.make(live(workspace()));
    await sh(box, `mkdir sub && cd sub && ${gitDirectory('/tmp/none')}`);
    await box.stop(0);
    expect((await notes(world, 'workspace_planted'))[0]).toContain('sub (git directory, new)');
    const free = await world.make(live(workspace(), open));
    expect(await free.scan()).toBeUndefined();
  });

  test('comes by itself after an exec that planted something', async () => {
    const { make, sandboxes } = await openSandboxes();
    const box = await make(live(workspace()));
    await sh(box, 'echo x > .npmrc');
    // Nobody asks for a scan: the event ends this.
    for await (const event of sandboxes.events.follow(0, new AbortController().signal))
      if (event.type === 'sandbox.note' && event.code === 'workspace_planted') {
        expect(event.message).toContain('.npmrc (name, new)');
        break;
      }
  });

  test('that does not end delays no answer of an exec, and a stop is answered without its result', async () => {
    const first = await openSandboxes();
    const { id } = await first.make(live(workspace()));
    await first.abandon();
    const next = await openSandboxes({ stateDir: first.stateDir });
    const hanging = deferred<never>();
    const asked = deferred<void>();
    next.world.store.loadManifest = async () => {
      asked.resolve();
      return await hanging.promise;
    };
    const box = next.sandboxes.get(id);
    expect(await sh(box, 'echo x > .npmrc; echo one')).toBe('one\n');
    // The scan that the exec asked for waits for what was there before.
    await asked.promise;
    expect(await sh(box, 'echo two')).toBe('two\n');
    expect(await box.stop(0)).toEqual({ finished: false, planted: [] });
    expect(box.state).toBe('STOPPED');
    expect(await box.remove({ force: true, scan: true })).toEqual({ finished: false, planted: [] });
  });

  test('comes before a removal that asks for it, whatever the state, also where a stop fails with force', async () => {
    const world = await openSandboxes();
    const makePlanted = async (): Promise<Sandbox> => {
      const box = await world.make(live(workspace()));
      await sh(box, 'echo x > .npmrc');
      return box;
    };
    const found = { '.npmrc': 'name, new' };
    const running = await makePlanted();
    const { engine } = world.world;
    const { stop } = engine;
    engine.stop = async () => {
      throw new Error('the engine does not stop it');
    };
    await expect(running.remove({ force: false, scan: true })).rejects.toThrow('does not stop it');
    expect(running.state).toBe('READY');
    expect(planted(await running.remove({ force: true, scan: true }))).toEqual(found);
    expect(running.state).toBe('DELETED');
    engine.stop = stop;
    const [paused, stopped, plain] = [await makePlanted(), await makePlanted(), await makePlanted()];
    await paused.pause();
    await stopped.stop(0);
    for (const box of [paused, stopped])
      expect(planted(await box.remove({ force: false, scan: true }))).toEqual(found);
    expect(await plain.remove({ force: false })).toBeUndefined();
    expect(world.sandboxes.list()).toEqual([]);
  });

  test('follows no link, and goes on where it may not read', async () => {
    const world = await openSandboxes();
    const elsewhere = repository();
    const folder = workspace();
    mkdirSync(join(folder, 'closed'));
    chmodSync(join(folder, 'closed'), 0);
    const box = await world.make(live(folder));
    await sh(box, `ln -s ${elsewhere} link; ln -s . self; echo x > .exrc`);
    expect(planted(await box.scan())).toEqual({ '.exrc': 'name, new' });
  });
});
