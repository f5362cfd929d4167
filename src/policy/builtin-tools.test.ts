import { describe, expect, it } from 'vitest';
import { builtinToolNames } from '../protocol/builtin-tool-names.ts';
import { parseSpec } from '../protocol/parse-spec.ts';
import { type PathFacts, type PlanFacts, planBox } from './box-plan.ts';
import { toolFor, wantedMounts } from './builtin-tools.ts';
import { forbiddenSource } from './forbidden-sources.ts';
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
  all.map(({ id, source }) => ({ id, home, found: there(`${home}/${source}`), ...change(id) }));
const plan = (tools: readonly string[], given = found()) =>
  planBox(parseSpec({ builtin_tools: tools }), facts(given));

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
  ])('%s brings what the table says', (tool, mounts) => {
    expect(plan([tool]).mounts).toEqual(
      mounts.map(([source, target, writable]) => ({ source: `${home}/${source}`, target, writable })),
    );
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
    expect(shadows).toEqual([
      { mountId: 'claude', source: `${home}/.claude`, target: '/home/sally/.claude', writable: true },
    ]);
    expect(notes).toContainEqual({ code: 'tool_shadow_copy', message: expect.stringContaining('x/link') });
  });

  it('an unknown one is an error that lists those that there are', () => {
    expect(() => parseSpec({ builtin_tools: ['claud'] })).toThrow(
      'builtin_tools.0 ("claud") is no built-in tool; did you mean claude? the built-in tools are claude, codex, git, uv, npm, apt',
    );
    expect(() => parseSpec({ builtin_tools: ['docker'] })).toThrow('the built-in tools are claude');
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
