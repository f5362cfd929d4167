import { describe, expect, it } from 'vitest';
import { type McpClient, settingsWith } from './client-settings.ts';
import { type McpRules, type SandboxRequest, specFor } from './rules.ts';
import { shown } from './shown-text.ts';
import { sandboxTools } from './tools/sandbox-tools.ts';

const rules: McpRules = {
  spec: { name: 'mine', image: 'base:1', limits: { memory: '1g' }, egress: { allow: ['x.org'] } },
  images: ['other:1'],
  mostSandboxes: 3,
};

describe('what a model may ask for', () => {
  it.each<[SandboxRequest, object]>([
    [{}, { image: 'base:1', limits: { memory: '1g' } }],
    [{ memory: '512m' }, { image: 'base:1', limits: { memory: 512 * 2 ** 20 } }],
    [
      { memory: '1g', cpus: 2, pids: 512 },
      { image: 'base:1', limits: { memory: 2 ** 30, cpus: 2, pids: 512 } },
    ],
    [
      { image: 'other:1', name: 'n' },
      { name: 'n', image: 'other:1', limits: { memory: '1g' } },
    ],
  ])('%j', (request, spec) => {
    expect(specFor(rules, request)).toEqual({ ...spec, egress: { allow: ['x.org'] } });
  });

  it('[O7] is the default image of the user, by its name', () => {
    const spec = { images: { default: 'mine:1', strict: 'hard:1' } };
    expect(specFor({ ...rules, spec }, { image: 'mine:1' })).toEqual({ ...spec, image: 'mine:1' });
    expect(() => specFor({ ...rules, spec }, { image: 'hard:1' })).toThrow('is refused');
  });

  it.each<SandboxRequest>([
    { memory: '1.1g' },
    { memory: 'much' },
    { cpus: 2.1 },
    { pids: 513 },
    { image: 'base:2' },
    { image: '' },
    { name: 'mine' },
  ])('is refused: %j', (request) => {
    expect(() => specFor(rules, request)).toThrow(/is refused/);
  });

  it('[A4] is no tool, and no other mode of one: those are as the user said', () => {
    const wish = { builtin_tools: [{ name: 'uv', mode: 'shared' }] };
    const create = sandboxTools.find(({ name }) => name === 'sandbox_create');
    expect(create?.input.safeParse({ name: 'n' }).success).toBe(true);
    expect(create?.input.safeParse(wish).success).toBe(false);
    const withTool = (tool: NonNullable<McpRules['spec']['builtin_tools']>[number]) =>
      specFor({ ...rules, spec: { builtin_tools: [tool] } }, wish as SandboxRequest).builtin_tools;
    expect(withTool('uv')).toEqual(['uv']);
    expect(withTool({ name: 'uv', mode: 'shared' })).toEqual([{ name: 'uv', mode: 'shared' }]);
  });

  it('is bounded by the profile where the user said nothing', () => {
    const strict: McpRules = { ...rules, spec: { profile: 'strict' } };
    expect(() => specFor(strict, { memory: '257m' })).toThrow(/is refused/);
    expect(specFor(strict, { memory: '256m' })).toMatchObject({ limits: { memory: 256 * 2 ** 20 } });
  });
});

describe('settings of clients', () => {
  const server = { command: '/x/sally', args: ['mcp'] };

  it('replaces its own table of TOML and no other', () => {
    const before = 'model = "m"\n\n[mcp_servers.sallyport]\ncommand = "old"\nargs = []\n\n[other]\na = 1\n';
    const after =
      'model = "m"\n\n[mcp_servers.sallyport]\ncommand = "/x/sally"\nargs = ["mcp"]\n\n[other]\na = 1\n';
    expect(settingsWith('codex', server, before)).toBe(after);
    expect(settingsWith('codex', server, after)).toBe(after);
    expect(settingsWith('codex', server, '[a]\nb = 1')).toContain('[a]\nb = 1\n\n[mcp_servers.sallyport]\n');
  });

  it('are told of a URL, and of where the token is, never of the token', () => {
    const place = { url: 'http://127.0.0.1:1/mcp' };
    const json = (client: McpClient, before?: string): unknown =>
      JSON.parse(settingsWith(client, place, before));
    const headers = (token: string): object => ({ headers: { Authorization: `Bearer ${token}` } });
    expect(json('claude')).toEqual({
      mcpServers: { sallyport: { type: 'http', ...place, ...headers(`\${SALLYPORT_MCP_TOKEN}`) } },
    });
    expect(json('cursor')).toEqual({
      mcpServers: { sallyport: { ...place, ...headers(`\${env:SALLYPORT_MCP_TOKEN}`) } },
    });
    expect(json('opencode', '{"model":"m","mcp":{"other":{}}}')).toEqual({
      model: 'm',
      mcp: {
        other: {},
        sallyport: {
          type: 'remote',
          ...place,
          enabled: true,
          ...headers('{env:SALLYPORT_MCP_TOKEN}'),
          oauth: false,
        },
      },
    });
    const before = settingsWith('vscode', place, '{"inputs":[{"id":"other"}]}');
    expect(settingsWith('vscode', place, before)).toBe(before);
    expect(JSON.parse(before)).toEqual({
      inputs: [{ id: 'other' }, expect.objectContaining({ id: 'sallyport-mcp-token', password: true })],
      servers: { sallyport: { type: 'http', ...place, ...headers(`\${input:sallyport-mcp-token}`) } },
    });
    const stdio = settingsWith('codex', server, '[other]\na = 1\n');
    expect(settingsWith('codex', place, stdio)).toBe(
      '[other]\na = 1\n\n[mcp_servers.sallyport]\nurl = "http://127.0.0.1:1/mcp"\nbearer_token_env_var = "SALLYPORT_MCP_TOKEN"\n',
    );
  });

  it('are told of a command in the words of each', () => {
    expect(JSON.parse(settingsWith('opencode', server))).toEqual({
      mcp: { sallyport: { type: 'local', command: ['/x/sally', 'mcp'], enabled: true } },
    });
    expect(JSON.parse(settingsWith('vscode', server))).toEqual({
      servers: { sallyport: { type: 'stdio', ...server } },
    });
  });

  it.each(['[]', '{', '{"mcpServers":[]}'])('touches no JSON that is not understood: %s', (before) => {
    expect(() => settingsWith('claude', server, before)).toThrow(/cannot be read/);
  });
});

describe('text for a model', () => {
  it('keeps head and tail, and cuts no character in two', () => {
    expect(shown('short', 10)).toEqual({ text: 'short', truncated: false });
    const long = `${'😀'.repeat(100)}`;
    const { text, truncated } = shown(long, 51);
    expect(truncated).toBe(true);
    expect(text).toContain('characters left out');
    expect(Buffer.from(text, 'utf8').toString('utf8')).toBe(text);
  });
});
