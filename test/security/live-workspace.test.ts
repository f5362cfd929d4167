/**
 * A live workspace is the host's own folder, so what is planted there the host may execute later. Each act is tried twice in the
 * same words: in a sandbox as it is by default, and in one that was told to leave everything writable, where it works.
 */

import { execFileSync } from 'node:child_process';
import {
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { CreateInput } from '../../src/protocol/requests.ts';
import type { Sandbox } from '../../src/sandboxes/sandbox.ts';
import { temporaryFolder } from '../support/little-engine.ts';
import { portableGit } from '../support/portable-git.ts';
import { isRoot } from '../support/requires.ts';
import { openSandboxes, runInSandbox, type TestSandboxes } from '../support/sandboxes.ts';

/** As root a workspace must be somebody else's. */
const owner = isRoot ? 1234 : (process.getuid?.() ?? -1);
const asOwner = isRoot ? { uid: owner, gid: owner } : {};

function workspace(): string {
  const folder = temporaryFolder();
  if (isRoot) chownSync(folder, owner, owner);
  return folder;
}

/** The machine's own git, as the owner of the folder would use it. */
function git(folder: string, ...args: string[]): string {
  const env = { PATH: process.env['PATH'] ?? '', HOME: '/nonexistent', GIT_CONFIG_NOSYSTEM: '1' };
  const who = ['-c', 'user.name=Host', '-c', 'user.email=host@example.invalid'];
  return execFileSync('git', [...who, ...args], { cwd: folder, env, encoding: 'utf8', ...asOwner });
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
  test('cannot be planted from inside, whether it is there or not; without protection it can', async () => {
    const world = await openSandboxes();
    const folder = repository();
    const before = readdirSync(folder);
    const box = await world.make(live(folder, { protect: ['ci/deploy'] }));
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
    const { ok, checks } = await box.verify();
    expect(ok).toBe(true);
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
      spec: { workspace: { path: workspace(), ...open }, mounts, user: `${owner}:${owner}` },
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
  });
});
