import { readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, inject, it, onTestFinished } from 'vitest';
import { Secrets } from '../../src/sdk/secrets.ts';
import { cliLine, sally, startSally } from '../support/cli.ts';
import { commandExists, requirement } from '../support/requires.ts';
import { when } from '../support/selection.ts';

const value = 'the-real-value-of-the-test-0123456789';

/** A daemon with a state folder of its own, ended with the test. */
async function home(): Promise<{ readonly stateDir: string; readonly env: Record<string, string> }> {
  const stateDir = await mkdtemp(join(tmpdir(), 'sallyport-secrets-'));
  const env = { SALLYPORT_STATE_DIR: stateDir };
  onTestFinished(async () => {
    await sally(['daemon', 'stop'], { env });
    await rm(stateDir, { recursive: true, force: true });
  });
  return { stateDir, env };
}

/** Every file below the state folder but the one that holds the secrets. */
function everythingElse(stateDir: string): string {
  return readdirSync(stateDir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name !== 'secrets.json')
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'latin1'))
    .join('\n');
}

describe('sally secret', () => {
  it('[R8] sets from standard input, lists without values, checks, rotates and removes', async () => {
    const { stateDir, env } = await home();
    const set = await sally(['secret', 'set', 'anthropic'], { env, input: `${value}\n` });
    expect([set.code, set.stdout]).toEqual([0, '']);
    expect(set.stderr).toContain('api.anthropic.com');
    const header = 'authorization: Bearer {}';
    const flags = [
      '--host',
      'api.test',
      '--header',
      header,
      '--env',
      'CI_TOKEN',
      '--path',
      '/v1',
      '--budget',
      '9',
    ];
    expect((await sally(['secret', 'set', 'ci', ...flags], { env, input: value })).code).toBe(0);
    const dynamic = ['--host', 'api.test', '--header', header, '--command', 'printf', 'from-a-command'];
    expect((await sally(['secret', 'set', 'dynamic', ...dynamic], { env })).code).toBe(0);
    const listed = await sally(['secret', 'ls'], { env });
    expect(listed.stdout).toMatch(
      /anthropic +api\.anthropic\.com +x-api-key, authorization +ANTHROPIC_API_KEY +file/,
    );
    expect(listed.stdout).toMatch(/ci +api\.test\/v1 +authorization +CI_TOKEN +file/);
    expect(listed.stdout).toMatch(/dynamic .* command/);
    const checked = await sally(['secret', 'check'], { env });
    expect([checked.code, checked.stdout.match(/valid/g)?.length]).toEqual([0, 3]);
    const missing = await sally(['secret', 'check', 'ci', 'absent', '--json'], { env });
    expect(missing.code).toBe(1);
    expect(JSON.parse(missing.stdout)).toMatchObject([
      { state: 'valid' },
      { name: 'absent', state: 'missing' },
    ]);
    expect((await sally(['secret', 'set', 'ci', '--budget', '1', '--keep-value'], { env })).code).toBe(0);
    expect(
      (await sally(['secret', 'set', 'ci', '--expires', '2020-01-01'], { env, input: value })).code,
    ).toBe(0);
    expect((await sally(['secret', 'check', 'ci'], { env })).stdout).toContain('expired');
    const secrets = new Secrets({ stateDir, anyEngine: true });
    onTestFinished(() => secrets.disconnect());
    expect((await secrets.list()).map(({ name, budget }) => [name, budget])).toEqual([
      ['anthropic', undefined],
      ['ci', 1],
      ['dynamic', undefined],
    ]);
    expect((await sally(['secret', 'rm', 'ci', 'dynamic'], { env })).code).toBe(0);
    expect((await secrets.list()).map(({ name }) => name)).toEqual(['anthropic']);
    const shown = [set, listed, checked, missing].map(({ stdout, stderr }) => stdout + stderr).join('');
    expect(shown + everythingElse(stateDir)).not.toMatch(new RegExp(`${value}|from-a-command`));
  });

  it('[R8] refuses what is bound to no host, a value on the command line, and none at all', async () => {
    const { env } = await home();
    const run = async (args: readonly string[], input = value) => {
      const { code, stderr, stdout } = await sally(['secret', ...args], { env, input });
      expect(stderr + stdout).not.toContain(value);
      return [code, stderr] as const;
    };
    const host = ['--host', 'api.test'];
    const header = ['--header', 'authorization: Bearer {}'];
    for (const [args, words, input] of [
      [['set', 'ci'], /bound to no host/],
      [['set', 'ci', ...host], /both --host and --header/],
      [['set', 'ci', ...host, '--header', `authorization: Bearer ${value}`], /\{\} where the value goes/],
      [['set', 'ci', value], /too many arguments/],
      [['set', 'ci', ...host, ...header], /no value/, ''],
      [['set', 'ci', ...host, ...header], /no token/, 'two words of a value'],
      [['set', 'ci', '--host', '*.test', ...header], /no host name/],
      [['set', 'ci', '--service', 'nobody'], /not known/],
    ] as const) {
      const [code, stderr] = await run(args, input);
      expect([args.join(' '), code, stderr]).toEqual([args.join(' '), 2, expect.stringMatching(words)]);
    }
    expect((await run(['rm', 'absent']))[0]).toBe(1);
    expect((await sally(['secret', 'ls', '--json'], { env })).stdout.trim()).toBe('[]');
  });

  it('[O5] that is not there is refused by run and create, and nothing is made', async () => {
    const { env } = await home();
    const image = ['--image', inject('engine').image];
    for (const args of [
      ['run', ...image, '--secret', 'absent', '--', 'true'],
      ['create', ...image, '--secret', 'absent'],
      ['run', ...image, '--upstream', 'http://proxy.test:3128', '--upstream-secret', 'absent', '--', 'true'],
    ]) {
      const { code, stderr, stdout } = await sally(args, { env });
      expect([args[0], code === 0, stdout]).toEqual([args[0], false, '']);
      expect(stderr).toMatch(/there is no secret absent/);
      expect(stderr).toContain('sally secret set absent');
    }
    expect(JSON.parse((await sally(['ls', '--json'], { env })).stdout)).toMatchObject({ sandboxes: [] });
  });

  when(requirement('script', commandExists('script'))).it('[R8] does not show what is typed', async () => {
    const { env } = await home();
    const line = `${cliLine()} secret set openai`;
    const running = startSally(['-qec', line, '/dev/null'], { env, command: ['script'], openInput: true });
    await running.said('(not shown)');
    running.child.stdin?.write(`${value}\r`);
    const typed = await running.result;
    expect(typed.stdout).toContain('(not shown)');
    expect(typed.stdout).toContain('the secret openai is set');
    expect(typed.stdout).not.toContain(value);
    expect((await sally(['secret', 'check', 'openai'], { env })).code).toBe(0);
  });
});
