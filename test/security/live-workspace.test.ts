/**
 * A live workspace is the host's own folder, so what is planted there the host may execute later. Each act is tried twice in the
 * same words: in a sandbox as it is by default, and in one that was told to leave everything writable, where it works.
 */

import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { Serial } from '../../src/lib/serial.ts';
import { sandboxIdFrom } from '../../src/protocol/ids.ts';
import type { CreateInput } from '../../src/protocol/requests.ts';
import type { Sandbox } from '../../src/sandboxes/sandbox.ts';
import { makeStubs, type StubTurns } from '../../src/sandboxes/stubs.ts';
import { daemonHome } from '../support/daemon-home.ts';
import { onDocker, testImage } from '../support/engine-under-test.ts';
import { temporaryFolder } from '../support/little-engine.ts';
import { portableGit } from '../support/portable-git.ts';
import { commandExists, isRoot, requirement } from '../support/requires.ts';
import { openSandboxes, runInSandbox, type TestSandboxes } from '../support/sandboxes.ts';
import { asRoot, dockerAlone, isSelected, onGvisor } from '../support/selection.ts';

/** As root a workspace must be somebody else's. */
const owner = isRoot ? 1234 : (process.getuid?.() ?? -1);
const asOwner = isRoot ? { uid: owner, gid: owner } : {};

const hasGvisor =
  isSelected(dockerAlone, 'the same on gVisor') &&
  isSelected(asRoot, 'the same on gVisor') &&
  isSelected(onGvisor, 'the same on gVisor') &&
  requirement('gVisor (runsc)', commandExists('runsc'));
const runtimes = [onDocker ? 'runc' : 'bwrap', ...(hasGvisor ? ['runsc'] : [])];

function workspace(): string {
  const folder = temporaryFolder();
  if (isRoot) chownSync(folder, owner, owner);
  return folder;
}

/** The machine's own git, as the owner of the folder would use it. */
function git(folder: string, ...args: string[]): string {
  const env = { PATH: process.env['PATH'] ?? '', HOME: '/nonexistent', GIT_CONFIG_NOSYSTEM: '1' };
  const who = ['-c', 'user.name=Host', '-c', 'user.email=host@example.invalid'];
  return execFileSync('git', [...who, ...args], {
    cwd: folder,
    env,
    encoding: 'utf8',
    stdio: 'pipe',
    ...asOwner,
  });
}

function repository(): string {
  const folder = workspace();
  git(folder, 'init', '--quiet', '--initial-branch=main');
  git(folder, 'commit', '--quiet', '--allow-empty', '--message=first');
  return folder;
}

async function sh(box: Sandbox, script: string): Promise<string> {
  const { exec, output } = await runInSandbox(box, ['sh', '-c', script]);
  expect(exec.state).toBe('exited');
  return output.data;
}

const live = (path: string, more: Record<string, unknown> = {}): CreateInput => ({
  spec: { workspace: { path, ...more } },
});
const open = { dangerously_unprotected: ['all'] };

const acts: Readonly<Record<string, string>> = {
  hook: 'echo x > .git/hooks/pre-commit',
  hookByLink: 'ln -s /tmp .git/hooks/pre-commit',
  config: 'echo "[core] fsmonitor = x" >> .git/config',
  configByRename: 'echo x > .git/other && mv .git/other .git/config',
  configByHardLink: 'echo x > .git/other2 && ln -f .git/other2 .git/config',
  configRemoved: 'rm .git/config',
  configOfWorktree: 'echo x > .git/config.worktree',
  commonDirectory: 'echo ../evil > .git/commondir',
  attributes: 'echo x > .git/info/attributes',
  hooksRenamed: 'mv .git/hooks .git/hooks.old',
  repositoryRenamed: 'mv .git .git.old',
  envrc: 'echo x > .envrc',
  envrcByLink: 'rm -rf .envrc && ln -s /tmp/x .envrc',
  tasks: 'mkdir -p .vscode && echo x > .vscode/tasks.json',
  tasksByRename: 'mkdir -p new/.vscode && rm -rf .vscode && mv new/.vscode .vscode',
  servers: 'echo x > .mcp.json',
  agent: 'mkdir -p .claude && echo x > .claude/settings.json',
  nextSandbox: 'echo x > sallyport.yaml',
  nextImage: 'echo x > Dockerfile.sallyport',
  deploy: 'mkdir -p ci/deploy && echo x > ci/deploy/run',
  deployByRename: 'mv ci ci.old && mkdir -p ci/deploy',
};

const tried = (name: string, act: string): string =>
  `if (${act}) >/dev/null 2>&1; then echo ${name} done; else echo ${name} refused; fi`;

const told = async ({ sandboxes }: TestSandboxes, code: string): Promise<string[]> => {
  const messages: string[] = [];
  for await (const event of sandboxes.events.follow(0, new AbortController().signal)) {
    if (event.type === 'sandbox.note' && event.code === code) messages.push(event.message);
    if (event.sequence === sandboxes.events.sequence) break;
  }
  return messages;
};

describe('[A2] what the host would execute', () => {
  test.each(runtimes)(
    'cannot be planted from inside, on %s, whether it is there or not; without protection it can',
    async (runtime) => {
      const world = await openSandboxes();
      const folder = repository();
      const before = readdirSync(folder);
      const box = await world.make({
        spec: { workspace: { path: folder, protect: ['ci/deploy'] }, runtime },
      });
      const verdicts = await sh(
        box,
        Object.entries(acts)
          .map(([name, act]) => tried(name, act))
          .join('\n'),
      );
      expect(verdicts.trim().split('\n')).toEqual(Object.keys(acts).map((name) => `${name} refused`));
      expect(await sh(box, 'echo made > file && mkdir sub && echo x > .git/description && cat file')).toBe(
        'made\n',
      );
      const { checks } = await box.verify();
      // What was tried on the way is found further down.
      expect(checks.filter(({ status }) => status === 'failed').map(({ name }) => name)).toEqual([
        'workspace new/.vscode',
        'workspace scan',
      ]);
      expect(checks).toContainEqual(
        expect.objectContaining({ name: 'protected /workspace/.git/hooks', found: 'ro' }),
      );
      expect((await told(world, 'workspace_stubs'))[0]).toContain(join(folder, '.envrc'));
      await box.stop(0);
      expect(readdirSync(folder).sort()).toEqual([...before, 'file', 'sub', 'new'].sort());
      expect(readdirSync(join(folder, '.git'))).not.toContain('commondir');
      expect(git(folder, 'status', '--porcelain')).toBe('?? file\n');

      const template = repository();
      mkdirSync(join(template, 'ci'));
      const mounts = [{ source: template, target: '/template' }];
      const free = await world.make({
        spec: { workspace: { path: workspace(), ...open }, mounts, user: `${owner}:${owner}`, runtime },
      });
      // Anew for each act, because one may spoil the next.
      const anew = 'find . -mindepth 1 -delete; cp -R /template/. .';
      const possible = await sh(
        free,
        Object.entries(acts)
          .map(([name, act]) => `${anew}; ${tried(name, act)}`)
          .join('\n'),
      );
      expect(possible.trim().split('\n')).toEqual(Object.keys(acts).map((name) => `${name} done`));
    },
  );

  test('is not run by git on the host after a sandbox tried; without protection it is', async () => {
    const world = await openSandboxes();
    const trial = async (more: Record<string, unknown>): Promise<boolean> => {
      const folder = repository();
      const marker = join(workspace(), 'ran');
      const box = await world.make(live(folder, more));
      const plant = `printf '#!/bin/sh\\ntouch ${marker}\\n' > .git/hooks/pre-commit && chmod 755 .git/hooks/pre-commit`;
      await sh(
        box,
        `${plant}; printf '[core]\\n fsmonitor = touch ${marker}\\n' >> .git/config; echo x > file`,
      );
      await box.remove({ force: true });
      git(folder, 'status');
      git(folder, 'add', 'file');
      git(folder, 'commit', '--quiet', '--message=second');
      return existsSync(marker);
    };
    expect(await trial({})).toBe(false);
    expect(await trial(open)).toBe(true);
  });

  test.each([
    ['a section and a key in one line', '[core] hooksPath = .githooks ; ours\n'],
    ['quotes', '[CORE]\n hookspath = ".git""hooks"\n'],
    ['a file that is included', '[include] path = ../.gitconfig\n'],
  ])(
    'is not run by git as a hook that its configuration names by %s; without protection it is',
    async (_, text) => {
      const world = await openSandboxes();
      const trial = async (more: Record<string, unknown>): Promise<boolean> => {
        const folder = repository();
        const marker = join(workspace(), 'ran');
        appendFileSync(join(folder, '.git/config'), text);
        const box = await world.make(live(folder, more));
        await sh(
          box,
          `printf '[core]\n hooksPath = .githooks\n' > .gitconfig; mkdir -p .githooks;
        printf '#!/bin/sh\ntouch ${marker}\n' > .githooks/pre-commit; chmod 755 .githooks/pre-commit; echo x > file`,
        );
        await box.remove({ force: true });
        git(folder, 'add', 'file');
        git(folder, 'commit', '--quiet', '--message=second');
        return existsSync(marker);
      };
      expect(await trial({})).toBe(false);
      expect(await trial(open)).toBe(true);
    },
  );

  test('is held again after the host itself replaced it, with what is there now', async () => {
    const world = await openSandboxes();
    const folder = repository();
    const box = await world.make(live(folder));
    // Writes a new file and renames it over the old one, which takes the mount with it.
    git(folder, 'config', 'user.name', 'Somebody');
    const script = 'grep Somebody .git/config; (echo x >> .git/config) 2>/dev/null || echo held';
    expect(await sh(box, script)).toBe('\tname = Somebody\nheld\n');
    expect((await told(world, 'mount_healed'))[0]).toContain('.git/config');
  });

  test('is not trusted to an engine: a sandbox without one of the mounts does not start', async () => {
    const { make } = await openSandboxes({
      tamper: (box) => ({
        ...box,
        mounts: box.mounts.filter(({ target }) => target !== '/workspace/.git/hooks'),
      }),
    });
    const folder = repository();
    await expect(make(live(folder))).rejects.toMatchObject({
      code: 'isolation_missing',
      details: expect.objectContaining({ checks: ['protected /workspace/.git/hooks'] }),
    });
    expect(readdirSync(folder)).toEqual(['.git']);
    await make(live(repository(), { dangerously_unprotected: ['.git/hooks'] }));
  });

  test('in a repository that is made further down is reported and not prevented: a known gap', async () => {
    const { make } = await openSandboxes();
    const { mount, prelude } = portableGit();
    const folder = repository();
    const marker = join(workspace(), 'ran');
    const box = await make({ spec: { workspace: { path: folder }, mounts: [mount] } });
    const nested = `git init --quiet sub && cd sub && git commit --quiet --allow-empty --message=x && cd .. && git add sub`;
    expect(
      await sh(
        box,
        `${prelude}; (${nested}) 2>/dev/null && git -C sub config core.fsmonitor 'touch ${marker}'`,
      ),
    ).toBe('');
    expect((await box.scan())?.planted).toEqual([
      expect.objectContaining({ path: 'sub/.git', kind: 'git directory', how: 'new' }),
    ]);
    await box.remove({ force: true });
    git(folder, 'status');
    // When this fails the gap is closed: say so in docs/limitations.md.
    expect(existsSync(marker)).toBe(true);
  });

  test('a link in its place is refused before anything is made, and so is an unknown name to leave unprotected', async () => {
    const { make, sandboxes } = await openSandboxes();
    const folder = workspace();
    symlinkSync('/tmp', join(folder, '.claude'));
    const refused = (field: string) => ({
      code: 'refused_by_policy',
      details: expect.objectContaining({ field }),
    });
    await expect(make(live(folder))).rejects.toMatchObject(refused('workspace.path'));
    const unknown = { dangerously_unprotected: ['Makefile'] };
    await expect(make(live(folder, unknown))).rejects.toMatchObject(
      refused('workspace.dangerously_unprotected'),
    );
    const wrongMode = { mode: 'readonly', protect: ['x'] };
    await expect(make(live(folder, wrongMode))).rejects.toMatchObject(refused('workspace.protect'));
    expect(sandboxes.list()).toEqual([]);
    expect(readdirSync(folder)).toEqual(['.claude']);
    await make(live(folder, { dangerously_unprotected: ['.claude'] }));
  });
});

describe('stubs', () => {
  test('are shared by two sandboxes of one folder, and go with the last of them', async () => {
    const { make } = await openSandboxes();
    const folder = workspace();
    const first = await make({ spec: { name: 'first', workspace: { path: folder } } });
    const second = await make({ spec: { name: 'second', workspace: { path: folder } } });
    await first.remove({ force: true });
    expect(readdirSync(folder)).toContain('.vscode');
    expect(await sh(second, 'echo x > .vscode/tasks.json || echo held')).toContain('held');
    await second.stop(0);
    expect(readdirSync(folder)).toEqual([]);
    await second.start();
    expect(await sh(second, 'echo x > .envrc || echo held')).toContain('held');
    // Filled on the host meanwhile: that is no stub any more.
    writeFileSync(join(folder, '.vscode/settings.json'), '{}');
    await second.remove({ force: true });
    expect(readdirSync(folder)).toEqual(['.vscode']);
  });

  test('stay while a sandbox of another daemon has them mounted, and go when it has not', async () => {
    const [one, another] = [await openSandboxes(), await openSandboxes()];
    const folder = workspace();
    const first = await one.make({ spec: { name: 'first', workspace: { path: folder } } });
    const second = await another.make({ spec: { name: 'second', workspace: { path: folder } } });
    await first.stop(0);
    expect(readdirSync(folder)).toContain('.vscode');
    expect(await sh(second, 'echo x > .vscode/tasks.json || echo held')).toContain('held');
    await second.stop(0);
    await first.start();
    await first.remove({ force: true });
    expect(readdirSync(folder)).toEqual([]);
  });

  test.each(['create.stubs', 'create.started', 'create.greeted'])(
    'are taken away by the next daemon when the first is killed at %s',
    async (point) => {
      const home = await daemonHome();
      const folder = workspace();
      const first = await home.start({ SALLYPORT_CRASH_AT: point });
      const spec = { name: 'victim', ...testImage(), workspace: { path: folder } };
      await expect(first.client.json('POST', '/v1/sandboxes', { body: { spec } })).rejects.toBeDefined();
      await first.ended;
      expect(readdirSync(folder)).toContain('.vscode');
      await home.start();
      expect(readdirSync(folder)).toEqual([]);
    },
  );

  test('are not made through a link', async () => {
    const elsewhere = workspace();
    const folder = workspace();
    symlinkSync(elsewhere, join(folder, 'sub'));
    const plan = {
      stubs: [{ path: join(folder, 'sub/.vscode') }, { path: join(folder, 'own') }],
    };
    const id = sandboxIdFrom(Buffer.alloc(10));
    const turns: StubTurns = {
      turns: new Serial(),
      neededByOthers: () => false,
      boundPaths: async () => new Set(),
    };
    const made = makeStubs({ id, plan }, turns, () => {});
    await expect(made).rejects.toMatchObject({
      code: 'stub_impossible',
      details: { path: join(folder, 'sub/.vscode') },
    });
    expect(readdirSync(elsewhere)).toEqual([]);
  });
});

describe('a git worktree', () => {
  /** A repository, and a worktree of it beside it. */
  function worktree(): { readonly main: string; readonly path: string; readonly gitDir: string } {
    const main = repository();
    const path = join(workspace(), 'tree');
    git(main, 'worktree', 'add', '--quiet', '-b', 'side', path);
    return { main, path, gitDir: join(main, '.git/worktrees/tree') };
  }

  test('has git inside: status, log and commit work, and nothing can be planted in its repository', async () => {
    const world = await openSandboxes();
    const tools = portableGit();
    const { main, path, gitDir } = worktree();
    // Git would write to it after a day, which it may not.
    const old = new Date(Date.now() - 3 * 86_400_000);
    utimesSync(join(gitDir, 'gitdir'), old, old);
    const box = await world.make({ spec: { workspace: { path }, mounts: [tools.mount] } });
    const work =
      'echo x > file && git add file && git commit --quiet --message=inside && git log --format=%s && git status --short';
    const worked = await sh(box, `${tools.prelude}; ${work}`);
    // With 2.47 a commit takes the lock of packed-refs to delete a ref that is not there, and goes on without it.
    const complaint = /^error: Unable to create '[^']*\/packed-refs\.lock': Read-only file system\n/;
    expect(worked.replace(complaint, '')).toBe('inside\nfirst\n');
    const planting = {
      hook: `echo x > ${main}/.git/hooks/pre-commit`,
      config: `echo x >> ${main}/.git/config`,
      otherHead: `echo x > ${main}/.git/HEAD`,
      ownConfig: `echo x > ${gitDir}/config.worktree`,
      ownCommonDirectory: `echo /tmp > ${gitDir}/commondir`,
      ownPlace: `echo /tmp > ${gitDir}/gitdir`,
      ownModule: `mkdir -p ${gitDir}/modules/sub`,
      ownModules: `mv ${gitDir}/modules ${gitDir}/other`,
      attributes: `mkdir -p ${main}/.git/info && echo x > ${main}/.git/info/attributes`,
      module: `mkdir -p ${main}/.git/modules/sub`,
      otherWorktree: `mkdir ${main}/.git/worktrees/other`,
      renamed: `mv ${gitDir} ${gitDir}.old`,
      pointer: 'echo gitdir: /tmp > .git',
    };
    const tries = Object.entries(planting).map(([name, act]) => tried(name, act));
    expect((await sh(box, tries.join('\n'))).trim().split('\n')).toEqual(
      Object.keys(planting).map((name) => `${name} refused`),
    );
    await box.remove({ force: true });
    expect(git(main, 'log', '--format=%s', 'side')).toBe('inside\nfirst\n');
    expect(git(path, 'status', '--porcelain')).toBe('');
    expect(existsSync(join(gitDir, 'config.worktree'))).toBe(false);
    expect(existsSync(join(gitDir, 'modules'))).toBe(false);
  });

  test('that its repository does not know is not believed: nothing of it is inside, and a note says so', async () => {
    const world = await openSandboxes();
    const { gitDir, main } = worktree();
    const thief = workspace();
    writeFileSync(join(thief, '.git'), `gitdir: ${gitDir}\n`);
    const box = await world.make(live(thief));
    expect(await sh(box, `ls ${main} 2>/dev/null || echo nothing`)).toBe('nothing\n');
    expect((await told(world, 'git_unavailable'))[0]).toContain('belongs to another folder');
  });

  test('in read-only mode is read-only with its repository', async () => {
    const world = await openSandboxes();
    const tools = portableGit();
    const { main, path } = worktree();
    const spec = {
      workspace: { path, mode: 'readonly' as const },
      mounts: [tools.mount],
      user: `${owner}:${owner}`,
    };
    const box = await world.make({ spec });
    expect(
      await sh(
        box,
        `${tools.prelude}; git log --format=%s; touch ${main}/.git/objects/x 2>/dev/null || echo held`,
      ),
    ).toBe('first\nheld\n');
  });
});
