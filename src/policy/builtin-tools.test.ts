import { describe, expect, it } from 'vitest';
import { builtinToolNames } from '../protocol/builtin-tool-names.ts';
import { parseSpec } from '../protocol/parse-spec.ts';
import { type PathFacts, type PlanFacts, planBox } from './box-plan.ts';
import { toolFor, wantedMounts } from './builtin-tools.ts';
import { forbiddenSource } from './forbidden-sources.ts';
import { toolNames } from './tool-names.ts';
import type { ToolFacts } from './tool-sources.ts';

const home = '/home/me';
const there = (path: string): PathFacts => ({
  kind: 'directory',
  real: path,
  realKind: 'directory',
  uid: 1000,
  gid: 1000,
});
const missing = (path: string): PathFacts => ({
  kind: 'missing',
  real: path,
  realKind: 'missing',
  uid: -1,
  gid: -1,
});
const facts = (tools: readonly ToolFacts[]): PlanFacts => ({
  host: { uid: 1000, gid: 1000, platform: 'linux' },
  engine: { name: 'docker', rootless: false, defaultRuntime: 'runc' },
  freeUid: 64007,
  places: { platform: 'linux', homes: [home], stateDirs: [], engineSockets: [], programs: [] },
  mounts: [],
  tools,
});
const all = wantedMounts(builtinToolNames);
const found = (change: (id: string) => Partial<ToolFacts> = () => ({})): readonly ToolFacts[] =>
  all.map(({ id, source }) => ({
    id,
    home,
    found: there(`${home}/${source}`),
    look: { found: {}, executed: [], named: [] },
    ...change(id),
  }));
const plan = (tools: readonly unknown[], given = found()) =>
  planBox(parseSpec({ builtin_tools: tools }), facts(given));
const shared = (name: string) => ({ name, mode: 'shared' });

describe('[A4] the built-in tools', () => {
  it.each([
    ['claude', [['.claude', '/home/sally/.claude', true]]],
    [
      'codex',
      [
        ['.codex', '/home/sally/.codex', true],
        ['.agents', '/home/sally/.agents', true],
      ],
    ],
    ['git', [['.config/gh', '/home/sally/.config/gh', false]]],
    [
      'uv',
      [
        ['.cache/uv', '/home/sally/.cache/uv', true],
        ['.local/share/uv', '/home/sally/.local/share/uv', true],
      ],
    ],
    ['npm', [['.npm', '/home/sally/.npm', true]]],
    ['apt', [['.cache/sallyport-apt', '/var/cache/apt/archives', true]]],
  ])('%s in mode shared brings what the table says, and nothing of it is held', (tool, mounts) => {
    const { mounts: made, stubs, shadows, notes, sharedTools } = plan([shared(tool)]);
    expect(made).toEqual(
      mounts.map(([source, target, writable]) => ({ source: `${home}/${source}`, target, writable })),
    );
    expect([stubs, shadows]).toEqual([undefined, []]);
    const isOpen = mounts.some(([, , writable]) => writable === true);
    expect(sharedTools).toEqual(isOpen ? [tool] : undefined);
    expect(notes.filter(({ code }) => code === 'tool_shared')).toHaveLength(isOpen ? 1 : 0);
  });

  it.each([
    ['claude', ['.claude']],
    ['codex', ['.codex', '.agents']],
    ['npm', ['.npm']],
  ])('%s by itself has the same binds, and over them what the host executes is held', (tool, folders) => {
    const { mounts, stubs = [], toolFolders = [] } = plan([tool]);
    expect(mounts.slice(0, folders.length).map(({ source, writable }) => [source, writable])).toEqual(
      folders.map((folder) => [`${home}/${folder}`, true]),
    );
    expect(toolFolders.map(({ source }) => source)).toEqual(folders.map((folder) => `${home}/${folder}`));
    for (const { name, mount, missing, inside } of toolNames) {
      const folder = toolFolders.find(({ mountId }) => mountId === mount);
      if (folder === undefined || missing === 'scan') continue;
      const source = `${folder.source}/${name}`;
      const stub = missing === 'folder' ? { path: source } : { path: source, content: missing.content };
      expect(stubs).toContainEqual(stub);
      if (inside !== 'readonly') continue;
      expect(mounts).toContainEqual({ source, target: `${folder.target}/${name}`, writable: false });
    }
  });

  it.each(['claude', 'codex', 'npm'])('nothing of %s is bound if nobody looked into its folder', (tool) => {
    const blind = found().map(({ look: _, ...fact }) => fact);
    expect(() => plan([tool], blind)).toThrow('nobody looked');
    expect(plan([shared(tool)], blind).mounts).not.toEqual([]);
  });

  it('uv has copies of its own, without passwords, and nothing of the host is bound', () => {
    const { mounts, shadows, notes } = plan(['uv']);
    expect(mounts).toEqual([]);
    expect(shadows).toEqual([
      {
        mountId: 'uv-cache',
        source: `${home}/.cache/uv`,
        target: '/home/sally/.cache/uv',
        writable: true,
        mayBeEmpty: true,
      },
      {
        mountId: 'uv-data',
        source: `${home}/.local/share/uv`,
        target: '/home/sally/.local/share/uv',
        writable: true,
        mayBeEmpty: true,
        excludes: ['credentials'],
      },
    ]);
    expect(notes.filter(({ code }) => code === 'tool_own_copy')).toHaveLength(2);
  });

  it('npm has its own packages and cache, filled where the host has one, and the rest is bound', () => {
    const given = found((id) =>
      id === 'npm'
        ? { look: { found: { _npx: 'directory', _cacache: 'directory' }, executed: [], named: [] } }
        : {},
    );
    const { shadows, covered } = plan(['npm'], given);
    expect(shadows.map(({ mountId, source }) => [mountId, source])).toEqual([
      ['npm._npx', `${home}/.npm/_npx`],
      ['npm._cacache', `${home}/.npm/_cacache`],
      ['npm._prebuilds', undefined],
      ['npm._libvips', undefined],
    ]);
    expect(covered).toContainEqual({ source: `${home}/.npm/_npx`, target: '/home/sally/.npm/_npx' });
  });

  it.each([
    ['a link', { 'settings.json': 'symlink' }],
    ['a link above it', { tmp: 'symlink' }],
    ['a file where a folder of its own would be', { shell_snapshots: 'file' }],
    ['a bare repository', { HEAD: 'file', refs: 'directory', objects: 'directory' }],
  ] as const)('[A6] copies a folder with %s, which cannot be held', (_what, there) => {
    const given = found((id) =>
      ['codex', 'claude'].includes(id) ? { look: { found: there, executed: [], named: [] } } : {},
    );
    const tool = Object.keys(there).some((name) => ['tmp', 'shell_snapshots'].includes(name))
      ? 'codex'
      : 'claude';
    const { mounts, shadows, notes } = plan([tool], given);
    expect(mounts.map(({ source }) => source)).not.toContain(`${home}/.${tool}`);
    expect(shadows).toContainEqual(expect.objectContaining({ mountId: tool, source: `${home}/.${tool}` }));
    expect(notes.map(({ code }) => code)).toContain('tool_shadow_copy');
  });

  it('holds programs that settings name, with what lies beside them, and state as it is', () => {
    const look = {
      found: {
        'statusline.sh': 'file',
        scripts: 'directory',
        projects: 'directory',
        'projects/run.sh': 'file',
      } as const,
      executed: ['statusline.sh'],
      named: ['scripts/deep/run.py', 'projects/run.sh', 'gone/hook.sh'],
    };
    const { mounts, stubs } = plan(
      ['claude'],
      found((id) => (id === 'claude' ? { look } : {})),
    );
    const at = (name: string) => mounts.find(({ source }) => source === `${home}/.claude/${name}`)?.writable;
    expect(['statusline.sh', 'scripts', 'projects/run.sh', 'projects', 'gone'].map(at)).toEqual([
      false,
      false,
      false,
      true,
      false,
    ]);
    // What is only there is not made again.
    expect(stubs?.map(({ path }) => path)).not.toContain(`${home}/.claude/statusline.sh`);
  });

  it('one tool in two modes is refused; the same twice is once', () => {
    expect(() => parseSpec({ builtin_tools: ['uv', shared('uv')] })).toThrow(
      'names uv as shared, and entry 0 as protected',
    );
    const protectedUv = { name: 'uv', mode: 'protected' };
    expect(parseSpec({ builtin_tools: ['uv', protectedUv, { name: 'uv' }] }).builtin_tools).toEqual([
      'uv',
      'uv',
      'uv',
    ]);
  });

  it('wants the SSH agent for git alone, and once', () => {
    expect(plan(['git', 'git', 'npm']).sockets).toEqual([{ id: 'ssh-agent' }]);
    expect(plan(['npm', 'uv']).sockets).toEqual([]);
  });

  it('makes the sandbox run as the host user where a folder is writable', () => {
    expect(plan(['npm']).user.uid).toBe(1000);
    expect(plan(['git']).user.uid).toBe(64007);
  });

  it.each(['claude', 'codex', 'git'])('says of %s that credentials become visible', (tool) => {
    expect(plan([tool]).notes).toContainEqual({
      code: 'tool_credentials',
      message: expect.stringContaining(tool),
    });
  });

  it('fails without the folders of claude and codex, and skips those of the others', () => {
    const none = found((id) => ({ found: missing(`/${id}`) }));
    for (const tool of ['claude', 'codex'])
      expect(() => plan([tool], none)).toThrow(`${tool} needs ${home}/`);
    const skipped = plan(['git', 'uv', 'npm', 'apt'], none);
    expect(skipped.mounts).toEqual([]);
    expect(skipped.notes.filter(({ code }) => code === 'tool_skipped')).toHaveLength(5);
  });

  it('[A6] copies a tree with links that lead out', () => {
    const { mounts, shadows, notes } = plan(
      ['claude'],
      found((id) => (id === 'claude' ? { escapes: 'x/link' } : {})),
    );
    expect(mounts).toEqual([]);
    const copy = {
      mountId: 'claude',
      source: `${home}/.claude`,
      target: '/home/sally/.claude',
      writable: true,
    };
    expect(shadows).toEqual([{ ...copy, excludes: expect.arrayContaining(['/shell-snapshots']) }]);
    expect(
      plan(
        [shared('claude')],
        found(() => ({ escapes: 'x/link' })),
      ).shadows,
    ).toEqual([copy]);
    expect(notes).toContainEqual({ code: 'tool_shadow_copy', message: expect.stringContaining('x/link') });
  });

  it('an unknown one is an error that lists those that there are', () => {
    expect(() => parseSpec({ builtin_tools: ['claud'] })).toThrow(
      'builtin_tools.0 ("claud") is no built-in tool; did you mean claude? the built-in tools are claude, codex, git, uv, npm, apt',
    );
    expect(() => parseSpec({ builtin_tools: ['docker'] })).toThrow('the built-in tools are claude');
    expect(() => parseSpec({ builtin_tools: [{ name: 'claud' }] })).toThrow(
      'builtin_tools.0.name ("claud") is no built-in tool; did you mean claude?',
    );
    expect(() => parseSpec({ builtin_tools: [{ name: 'uv', mode: 'open' }] })).toThrow(
      'builtin_tools.0.mode ("open") must be protected or shared',
    );
    expect(() => parseSpec({ builtin_tools: [{ name: 'uv', mod: 'shared' }] })).toThrow(
      'builtin_tools.0.mod is no known field; did you mean mode?',
    );
    expect(() => parseSpec({ builtin_tools: [7] })).toThrow('builtin_tools.0');
  });
});

describe('[O4] a place of credentials', () => {
  it.each([
    ['.claude', 'claude'],
    ['.codex', 'codex'],
    ['.config/gh', 'git'],
    ['.ssh', 'git'],
  ])('~/%s is refused with the tool that would serve: %s', (place, tool) => {
    const { places } = facts([]);
    expect(forbiddenSource(`${home}/${place}`, false, places)?.wayOut).toContain(`builtin_tools: [${tool}]`);
  });

  it('names no tool where there is none', () => {
    expect(toolFor('.aws')).toBeUndefined();
    expect(forbiddenSource(`${home}/.aws`, false, facts([]).places)?.wayOut).not.toContain('builtin_tools');
  });
});
