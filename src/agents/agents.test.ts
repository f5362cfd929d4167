import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { serviceOfToken } from '../policy/known-services.ts';
import { agentCommand } from './agent-command.ts';
import { chooseSecrets } from './choose-secrets.ts';
import { fillFile, readEnvironment } from './fill-file.ts';
import { findAgent, knownAgents } from './find-agent.ts';
import { gitHead } from './git-head.ts';

function folder(): string {
  const made = mkdtempSync(join(tmpdir(), 'sallyport-agents-'));
  onTestFinished(() => rmSync(made, { recursive: true, force: true }));
  return made;
}

function put(root: string, files: Readonly<Record<string, string>>): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(root, path, '..'), { recursive: true });
    writeFileSync(join(root, path), text);
  }
}

describe('the branch of a folder', () => {
  it('is read from the repository above it, also of a worktree', () => {
    const root = folder();
    put(root, {
      'repo/.git/HEAD': 'ref: refs/heads/feature/one\n',
      'repo/.git/worktrees/w/HEAD': 'ref: refs/heads/two\n',
      'repo/sub/file': '',
      'w/.git': `gitdir: ${root}/repo/.git/worktrees/w\n`,
    });
    expect(gitHead(join(root, 'repo/sub'))).toEqual({ kind: 'branch', branch: 'feature/one' });
    expect(gitHead(join(root, 'w'))).toEqual({ kind: 'branch', branch: 'two' });
    mkdirSync(join(root, 'repo/sub/.git'));
    expect(gitHead(join(root, 'repo/sub'))).toEqual({ kind: 'branch', branch: 'feature/one' });
  });

  it('is none of a commit, of no repository, and of one whose HEAD is no plain file', () => {
    const root = folder();
    put(root, { 'repo/.git/HEAD': `${'1'.repeat(40)}\n`, 'plain/file': '', 'odd/.git/config': '' });
    symlinkSync('/etc/passwd', join(root, 'odd/.git/HEAD'));
    expect(gitHead(join(root, 'repo'))).toEqual({ kind: 'detached' });
    expect(gitHead(join(root, 'plain'))).toEqual({ kind: 'folder' });
    expect(gitHead(join(root, 'odd'))).toEqual({ kind: 'folder' });
  });
});

describe('[R1] the definition of an agent', () => {
  it('is there for claude, codex and opencode, each with what it needs to act', async () => {
    const places = { userFolder: folder() };
    expect(knownAgents(places)).toEqual(['claude', 'codex', 'opencode']);
    for (const name of knownAgents(places)) {
      const agent = await findAgent(name, places);
      expect([agent.template, agent.headless?.length, agent.credentials?.length]).toEqual([
        name,
        expect.any(Number),
        1,
      ]);
    }
    const claude = await findAgent('claude', places);
    expect(claude.allow).toEqual(['statsig.anthropic.com', 'sentry.io']);
  });

  it('of the user comes before that of the package, and that of the workspace is never read', async () => {
    const userFolder = folder();
    const workspace = folder();
    put(userFolder, { 'agents/claude/agent.yaml': 'command: [mine]\n' });
    put(workspace, { 'agents/evil/agent.yaml': 'command: [evil]\n' });
    expect((await findAgent('claude', { userFolder, workspace })).command).toEqual(['mine']);
    await expect(findAgent('evil', { userFolder, workspace })).rejects.toMatchObject({
      code: 'agent_unknown',
      advice: expect.stringContaining('is not read'),
    });
    await expect(findAgent('clade', { userFolder })).rejects.toMatchObject({
      message: expect.stringContaining('did you mean claude?'),
    });
    for (const name of ['ls', '../claude', '', 'x'.repeat(21)])
      await expect(findAgent(name, { userFolder })).rejects.toMatchObject({ code: 'agent_unknown' });
  });

  it('is refused with its line where it says what is not known or not possible', async () => {
    for (const [text, words] of [
      ['command: [x]\nhosts: [a.b]\n', /:2:1: /],
      ['command: []\n', /command/],
      ['description: x\n', /command/],
      ['command: [x]\ntemplate: a\nimage: b\n', /both a template and an image/],
      ['command: [x]\nheadless: [-p]\n', /\{prompt\}/],
      ['command: [x]\nfiles: [{path: ~/../x, content: y}]\n', /path/],
      ['command: [x]\nfiles: [{path: /etc/x, content: y}]\n', /path/],
      ['command: [x]\nenvs: {SALLYPORT_X: y}\n', /reserved/],
    ] as const) {
      const userFolder = folder();
      put(userFolder, { 'agents/mine/agent.yaml': text });
      await expect(findAgent('mine', { userFolder }), text).rejects.toMatchObject({
        code: 'config_invalid',
        message: expect.stringMatching(words),
      });
    }
  });
});

describe('the command line of an agent', () => {
  it('acts unasked unless told otherwise, and gets prompt, model and its own arguments as they are', async () => {
    const claude = await findAgent('claude', { userFolder: folder() });
    const odd = '$(x) {model} `y`';
    expect(agentCommand(claude, { args: [] })).toEqual(['claude', '--dangerously-skip-permissions']);
    expect(agentCommand(claude, { args: ['--resume'], ask: true })).toEqual(['claude', '--resume']);
    expect(agentCommand(claude, { args: [], prompt: odd, model: 'opus' })).toEqual([
      ...['claude', '-p', odd, '--dangerously-skip-permissions', '--model', 'opus'],
    ]);
    const bare = { name: 'bare', file: 'agent.yaml', command: ['bare'] };
    expect(() => agentCommand(bare, { args: [], prompt: 'x' })).toThrow(/-p: the agent bare has no/);
  });
});

describe('[R7] the tokens of an agent', () => {
  const agent = { name: 'a', file: 'f', command: ['a'], credentials: [{ one_of: ['anthropic', 'openai'] }] };
  it('are the first of its choice, by name before service, and none is an error that says what to set', () => {
    const secret = (name: string, service?: 'openai' | 'anthropic') => ({ name, service, hosts: ['h'] });
    const chosen = (...known: ReturnType<typeof secret>[]) => chooseSecrets(agent, known)[0]?.name;
    expect(chosen(secret('openai'), secret('work', 'anthropic'))).toBe('work');
    expect(chosen(secret('work', 'anthropic'), secret('anthropic'))).toBe('anthropic');
    expect(chosen(secret('x', 'openai'))).toBe('x');
    expect(() => chosen(secret('other'))).toThrow(/needs a token/);
  });

  it('of Anthropic go the way of their kind', () => {
    expect(serviceOfToken('anthropic', 'sk-ant-oat01-x')).toBe('anthropic-oauth');
    expect(serviceOfToken('anthropic-oauth', 'sk-ant-api03-x')).toBe('anthropic');
    expect(serviceOfToken('anthropic', undefined)).toBe('anthropic');
    expect(serviceOfToken('openai', 'sk-ant-oat01-x')).toBe('openai');
  });
});

describe('the settings of an agent', () => {
  it('have variables in them as they stand between quotes, and keep other braces', () => {
    const env = readEnvironment('KEY=abcdef\0PATH_OF=a"b\\c\nd\0ODD\0');
    const filled = fillFile('{"x": {}, "k": "{KEY}", "l": "{KEY:-2}", "p": "{PATH_OF}", "n": "{NONE}"}', env);
    expect(JSON.parse(filled)).toEqual({ x: {}, k: 'abcdef', l: 'ef', p: 'a"b\\c\nd', n: '' });
  });
});
