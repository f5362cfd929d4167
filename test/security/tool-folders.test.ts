/**
 * Folders of built-in tools are the user's own, so what is planted there the host's Claude Code, Codex, uv or npm may execute later.
 * Each act is tried twice in the same words: in a sandbox as it is by default, and in one with `mode: shared`, where it works.
 */

import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { builtinTools } from '../../src/policy/builtin-tools.ts';
import { type ToolName, toolNames } from '../../src/policy/tool-names.ts';
import type { BoxRequest } from '../../src/protocol/box.ts';
import { createBody } from '../../src/protocol/requests.ts';
import type { Sandbox } from '../../src/sandboxes/sandbox.ts';
import { onDocker, testImage } from '../support/engine-under-test.ts';
import { commandExists, isRoot, requirement } from '../support/requires.ts';
import { openSandboxes, runInSandbox } from '../support/sandboxes.ts';
import { asRoot, dockerAlone, isSelected, onGvisor } from '../support/selection.ts';
import { bareTools, homeOwner, homeTree, inHomeOf, notesOf, toolHome } from '../support/tool-home.ts';

const hasGvisor =
  isSelected(dockerAlone, 'the same on gVisor') &&
  isSelected(asRoot, 'the same on gVisor') &&
  isSelected(onGvisor, 'the same on gVisor') &&
  requirement('gVisor (runsc)', commandExists('runsc'));
const runtimes = [onDocker ? 'runc' : 'bwrap', ...(hasGvisor ? ['runsc'] : [])];

const agentTools = ['claude', 'codex'] as const;
const shared = agentTools.map((name) => ({ name, mode: 'shared' as const }));

const inHome = ({ mount, name }: ToolName): string => {
  const all = Object.values(builtinTools).flatMap(({ mounts }) => mounts);
  return `${all.find(({ id }) => id === mount)?.source}/${name}`;
};

const agentMounts = new Set(agentTools.flatMap((tool) => builtinTools[tool].mounts.map(({ id }) => id)));
const agentNames = toolNames.filter(({ mount }) => agentMounts.has(mount));
const held = agentNames.filter(({ inside, missing }) => inside === 'readonly' && missing !== 'scan');
const scanned = agentNames.filter(({ missing }) => missing === 'scan');
const own = agentNames.filter(({ inside }) => inside === 'own');
/** A name that fits a pattern. */
const fitting = (entry: ToolName): string => inHome(entry).replace('*', '-planted');

const full: Record<string, string> = {
  ...bareTools,
  ...Object.fromEntries(
    held.map((entry) => [`${inHome(entry)}${entry.missing === 'folder' ? '/mine' : ''}`, 'mine']),
  ),
  ...Object.fromEntries(scanned.map((entry) => [fitting(entry), 'mine'])),
};

interface Act {
  readonly what: string;
  readonly path: string;
  readonly isFolder: boolean;
}

const always = ['write', 'link'];
const ifThere = ['rename', 'unlink', 'hard link', 'replace', 'replace the folder above'];

function actsOf(isThere: boolean): readonly Act[] {
  const ways = isThere ? [...always, ...ifThere] : always;
  const names = [
    ...held.map((entry) => ({ path: inHome(entry), isFolder: entry.missing === 'folder' })),
    ...(isThere ? scanned.map((entry) => ({ path: fitting(entry), isFolder: false })) : []),
  ];
  return names.flatMap((name) => ways.map((what) => ({ what, ...name })));
}

const actsProgram = readFileSync(new URL('./tool-acts.py', import.meta.url), 'utf8');

/** Those that were really done. */
async function tried(
  box: Sandbox,
  acts: readonly Act[],
  template: readonly string[] = [],
): Promise<string[]> {
  const lines = acts.map(({ what, path, isFolder }) => `${what}\t${path}\t${isFolder ? 'folder' : 'file'}`);
  const words = lines.join('\n');
  const { exec, output } = await runInSandbox(box, ['python3', '-c', actsProgram, words, ...template]);
  if (exec.exit_code !== 0) throw new Error(`the acts were not tried: ${output.data}`);
  return output.data.split('\n').flatMap((line) => {
    const act = line === '' ? undefined : acts[Number(line)];
    return act === undefined ? [] : [nameOf(act)];
  });
}

const nameOf = ({ what, path }: Act): string => `${what} ${path}`;

/** What lies right in the folder that is mounted has no folder above that could be moved. */
const isPossible = ({ what, path }: Act): boolean =>
  what !== 'replace the folder above' || path.split('/').length > 2;

const cases = runtimes.flatMap((runtime) => [
  { runtime, what: 'what is there', files: full },
  { runtime, what: 'what is absent', files: bareTools },
]);

describe('[A4] what the host executes from the folders of claude and codex', () => {
  test.each(cases)('cannot be changed from inside on $runtime: $what', async ({ runtime, files }) => {
    const path = toolHome(files);
    const before = homeTree(path);
    const { make } = await openSandboxes({ home: path });
    const box = await make({ spec: { builtin_tools: [...agentTools], runtime } });
    expect(await tried(box, actsOf(files === full))).toEqual([]);
    await expect(box.verify()).resolves.toMatchObject({ ok: true });
    await box.remove({ force: true });
    expect(homeTree(path)).toEqual(before);
  });

  test.each(cases)('can be changed with mode shared on $runtime: $what', async ({ runtime, files }) => {
    const open = toolHome(bareTools);
    const { make } = await openSandboxes({ home: open });
    const mounts = [{ source: toolHome(files), target: '/template' }];
    const control = await make({ spec: { builtin_tools: [...shared], mounts, runtime } });
    const possible = actsOf(files === full).filter(isPossible);
    expect(await tried(control, possible, ['/template'])).toEqual(possible.map(nameOf));
    expect(existsSync(join(open, '.claude'))).toBe(true);
  });

  test('is the sandbox its own where the tool writes there: the host sees none of it', async () => {
    const path = toolHome({ ...bareTools, '.claude/shell-snapshots/host.sh': 'mine' });
    const before = homeTree(path);
    const { make } = await openSandboxes({ home: path });
    const box = await make({ spec: { builtin_tools: [...agentTools] } });
    const script = own
      .map((entry) => `echo x > ${inHome(entry)}/planted && ls -A ${inHome(entry)}`)
      .join('\n');
    const { stdout } = await runInSandbox(box, ['sh', '-c', `cd\n${script}`]);
    expect(stdout.data.trim().split('\n')).toEqual(own.map(() => 'planted'));
    await box.stop(0);
    expect(homeTree(path)).toEqual(before);
    // The same acts, where the host's own folders are inside.
    const open = toolHome({ ...bareTools, ...Object.fromEntries(own.map((e) => [`${inHome(e)}/`, ''])) });
    const control = await (await openSandboxes({ home: open })).make({
      spec: { builtin_tools: [...shared] },
    });
    await runInSandbox(control, ['sh', '-c', `cd\n${script}`]);
    for (const entry of own) expect(readFileSync(join(open, inHome(entry), 'planted'), 'utf8')).toBe('x\n');
  });

  test('leaves state writable, which appears on the host', async () => {
    const path = toolHome({ ...bareTools, '.claude/.credentials.json': 'old' });
    const { make } = await openSandboxes({ home: path });
    const box = await make({ spec: { builtin_tools: [...agentTools] } });
    const state = [
      '.claude/projects/x.jsonl',
      '.claude/.credentials.json',
      '.claude/history.jsonl',
      '.codex/sessions/2026/one.jsonl',
      '.codex/auth.json',
      '.codex/tmp/else',
    ];
    const script = state.map((file) => `mkdir -p ${dirname(file)} && echo new > t && mv t ${file}`);
    await runInSandbox(box, ['sh', '-c', ['cd', ...script].join('\n')]);
    for (const file of state) expect(readFileSync(join(path, file), 'utf8')).toBe('new\n');
  });
});

describe('[A4] in the folder of a tool', () => {
  test('programs that settings name are held, with what lies beside them; with mode shared they are not', async () => {
    const hook = (command: string) => ({ hooks: [{ type: 'command', command }] });
    const path = toolHome({
      ...bareTools,
      '.claude/settings.json': JSON.stringify({
        hooks: { Stop: [hook('python3 ~/.claude/scripts/run.py --log ~/.claude/run.log')] },
        statusLine: { type: 'command', command: '$HOME/.claude/line/show' },
        apiKeyHelper: 'jq -r .key ~/.claude/.credentials.json; sh ~/.claude/gone/later.sh',
      }),
      '.claude/scripts/run.py': 'mine',
      '.claude/scripts/lib.py': 'mine',
      '.claude/line/show': 'mine',
      '.claude/own.sh': 'mine',
      '.claude/run.log': 'mine',
      '.claude/.credentials.json': 'mine',
      '.codex/config.toml': 'notify = ["python3", "~/.codex/tools/notify.py"]',
      '.codex/tools/notify.py': 'mine',
    });
    const script = [
      '.claude/scripts/run.py',
      '.claude/scripts/lib.py',
      '.claude/line/show',
      '.claude/own.sh',
      '.claude/gone/later.sh',
      '.codex/tools/notify.py',
      '.claude/run.log',
      '.claude/.credentials.json',
    ].map((file) => `(mkdir -p ${dirname(file)} && echo x > ${file}) 2>/dev/null && echo ${file}`);
    const { make } = await openSandboxes({ home: path });
    const box = await make({ spec: { builtin_tools: [...agentTools] } });
    expect(await inHomeOf(box, script.join('\n'))).toBe('.claude/run.log\n.claude/.credentials.json\n');
    await box.remove({ force: true });
    const open = await make({ spec: { builtin_tools: [...shared] } });
    expect((await inHomeOf(open, script.join('\n'))).trim().split('\n')).toHaveLength(script.length);
  });

  test('a name that cannot be held is reported when it appears, and state is not', async () => {
    const path = toolHome({ ...bareTools, '.claude/.claude.json': '{}' });
    const world = await openSandboxes({ home: path });
    const box = await world.make({ spec: { builtin_tools: [...agentTools] } });
    await expect(box.verify()).resolves.toMatchObject({ ok: true });
    await inHomeOf(
      box,
      'echo x > .claude/.config.json; echo x > .codex/evil.config.toml; mkdir -p .claude/projects/p && echo x > .claude/projects/p/settings.json; echo x > .codex/history.jsonl; mkdir -p .codex/sub/.git/objects .codex/sub/.git/refs && echo x > .codex/sub/.git/HEAD',
    );
    const scan = await box.scan();
    expect(scan?.planted.map(({ path: at, kind, how, tool }) => [at, kind, how, tool]).sort()).toEqual([
      ['~/.claude/.config.json', 'name', 'new', 'claude'],
      ['~/.codex/evil.config.toml', 'name', 'new', 'codex'],
      ['~/.codex/sub/.git', 'git directory', 'new', 'codex'],
    ]);
    const { ok, checks } = await box.verify();
    expect(ok).toBe(false);
    expect(checks).toContainEqual(
      expect.objectContaining({ name: 'tool ~/.claude/.config.json', status: 'failed' }),
    );
    expect((await notesOf(world, 'tool_planted'))[0]).toContain('~/.claude/.config.json (name, new)');
    // A new sandbox begins with what is there.
    await box.remove({ force: true });
    const next = await world.make({ spec: { builtin_tools: [...agentTools] } });
    expect((await next.scan())?.planted).toEqual([]);
  });

  test('git on the host obeys nothing that is planted there; with mode shared it does', async () => {
    const trial = async (mode: 'protected' | 'shared', isRepository: boolean): Promise<boolean> => {
      const path = toolHome(bareTools);
      const marker = join(toolHome({}), 'ran');
      const folder = join(path, '.claude');
      const asOwner = isRoot ? { uid: homeOwner, gid: homeOwner } : {};
      const env = { PATH: process.env['PATH'] ?? '', HOME: '/nonexistent', GIT_CONFIG_NOSYSTEM: '1' };
      const git = (...args: string[]): void => {
        try {
          execFileSync('git', args, { cwd: folder, env, stdio: 'ignore', ...asOwner });
        } catch {
          // It may say that there is no repository.
        }
      };
      if (isRepository) git('init', '--quiet');
      const { make } = await openSandboxes({ home: path });
      const box = await make({ spec: { builtin_tools: [{ name: 'claude', mode }] } });
      const config = `printf '[core]\\n repositoryformatversion = 0\\n bareTools = false\\n worktree = .\\n fsmonitor = "touch ${marker}; false"\\n'`;
      await inHomeOf(
        box,
        isRepository
          ? `cd .claude; ${config} > .git/config`
          : `cd .claude; mkdir -p objects refs/heads; echo 'ref: refs/heads/main' > HEAD; ${config} > config`,
      );
      git('status');
      await box.remove({ force: true });
      git('status');
      return existsSync(marker);
    };
    for (const isRepository of [true, false]) {
      expect(await trial('protected', isRepository)).toBe(false);
      expect(await trial('shared', isRepository)).toBe(true);
    }
  });

  test('a socket that controls a program of the host is not there; with mode shared it is', async () => {
    const path = toolHome({ ...bareTools, '.codex/app-server-control/': '' });
    const socket = join(path, '.codex/app-server-control/control.sock');
    const server = createServer().listen(socket);
    onTestFinished(() => void server.close());
    const { make } = await openSandboxes({ home: path });
    const look = '[ -S .codex/app-server-control/control.sock ] && echo there || echo none';
    const box = await make({ spec: { builtin_tools: ['codex'] } });
    expect(await inHomeOf(box, look)).toBe('none\n');
    await box.remove({ force: true });
    const open = await make({ spec: { builtin_tools: [{ name: 'codex', mode: 'shared' }] } });
    expect(await inHomeOf(open, look)).toBe('there\n');
  });

  test('what the host itself replaces or removes is held again', async () => {
    const path = toolHome({ ...bareTools, '.claude/settings.json': 'old', '.npm/_npx/one/x': 'mine' });
    const world = await openSandboxes({ home: path });
    const box = await world.make({ spec: { builtin_tools: ['claude', 'npm'] } });
    // A new file in its place takes the mount with it, and so does a folder that is removed.
    writeFileSync(join(path, 'new'), 'new');
    renameSync(join(path, 'new'), join(path, '.claude/settings.json'));
    const script = 'cat .claude/settings.json; (echo x > .claude/settings.json) 2>/dev/null || echo held';
    expect(await inHomeOf(box, script)).toBe('newheld\n');
    rmSync(join(path, '.npm/_npx'), { recursive: true });
    expect(await inHomeOf(box, 'mkdir -p .npm/_npx/two && echo x > .npm/_npx/two/x && ls .npm/_npx')).toBe(
      'one\ntwo\n',
    );
    expect(await notesOf(world, 'mount_healed')).toHaveLength(2);
    await box.remove({ force: true });
    expect(existsSync(join(path, '.npm/_npx'))).toBe(false);
  });

  test('what was held and is gone at a later start is forgotten, and the rest is held', async () => {
    const path = toolHome({ ...bareTools, '.claude/.config.json': '{}' });
    const world = await openSandboxes({ home: path });
    const box = await world.make({ spec: { builtin_tools: ['claude'] } });
    expect(await inHomeOf(box, '(echo x > .claude/.config.json) 2>/dev/null || echo held')).toBe('held\n');
    await box.stop(0);
    rmSync(join(path, '.claude/.config.json'));
    await box.start();
    expect(await notesOf(world, 'tool_renewed')).toHaveLength(1);
    const look = '(echo x > .claude/settings.json) 2>/dev/null || echo held; ls -A .claude';
    const seen = (await inHomeOf(box, look)).split('\n');
    expect(seen[0]).toBe('held');
    expect(seen).not.toContain('.config.json');
    await box.stop(0);
    expect(homeTree(path)).toEqual(homeTree(toolHome(bareTools)));
  });

  test('[O2] is shown by explain before anything is made', async () => {
    const path = toolHome({ ...bareTools, '.npm/': '' });
    const { sandboxes } = await openSandboxes({ home: path });
    const explain = async (tool: object) => {
      const spec = { ...testImage(), builtin_tools: [tool] };
      const { box } = await sandboxes.explain(createBody.parse({ spec }));
      return box.mounts.map(({ source, target, writable }) => [source, target, writable]);
    };
    const mounts = await explain({ name: 'npm' });
    expect(mounts).toContainEqual([join(path, '.npm'), '/home/sally/.npm', true]);
    expect(mounts).toContainEqual([
      expect.stringMatching(/\/shadow\/npm\._npx$/),
      '/home/sally/.npm/_npx',
      true,
    ]);
    expect(await explain({ name: 'claude' })).toContainEqual([
      join(path, '.claude/hooks'),
      '/home/sally/.claude/hooks',
      false,
    ]);
    expect(await explain({ name: 'claude', mode: 'shared' })).toEqual([
      [join(path, '.claude'), '/home/sally/.claude', true],
    ]);
    expect(homeTree(path)).toEqual(homeTree(toolHome({ ...bareTools, '.npm/': '' })));
  });

  test('is not trusted to an engine: a sandbox without one of the mounts does not start', async () => {
    const without = (target: string) => (box: BoxRequest) => ({
      ...box,
      mounts: box.mounts.filter((mount) => mount.target !== target),
    });
    for (const [tool, target, check] of [
      ['claude', '/home/sally/.claude/hooks', 'protected /home/sally/.claude/hooks'],
      ['npm', '/home/sally/.npm/_npx', 'mount /home/sally/.npm/_npx'],
    ] as const) {
      const path = toolHome({ ...bareTools, '.npm/': '' });
      const { make } = await openSandboxes({ home: path, tamper: without(target) });
      await expect(make({ spec: { builtin_tools: [tool] } })).rejects.toMatchObject({
        code: 'isolation_missing',
        details: expect.objectContaining({ checks: [check] }),
      });
      expect(homeTree(path)).toEqual(homeTree(toolHome({ ...bareTools, '.npm/': '' })));
      await make({ spec: { builtin_tools: [{ name: tool, mode: 'shared' }] } });
    }
  });
});
