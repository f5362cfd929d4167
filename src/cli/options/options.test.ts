import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { copyOf, envFilePairs, envPairs, labelPairs, mountOf } from './pairs.ts';
import { specFlags } from './spec-from-options.ts';
import { graceValue, lifetimeValue, modeValue, sizeValue, timeoutValue } from './values.ts';

describe('pairs', () => {
  it('takes the value after the first equals sign, and nothing from the environment', () => {
    expect(envPairs(['A=1', 'B=x=y', 'C='])).toEqual({ A: '1', B: 'x=y', C: '' });
    expect(() => envPairs(['HOME'])).toThrow('nothing is taken from this shell');
    expect(() => envPairs(['=x'])).toThrow('NAME=value');
  });

  it('reads files as Docker does, and does not repeat a line that is wrong', () => {
    expect(envFilePairs('f', '# comment\r\nA=1\r\n\n  # more\nB="quoted" \n')).toEqual({
      A: '1',
      B: '"quoted" ',
    });
    const wrong = (): unknown => envFilePairs('f', 'A=1\nsecret-without-name');
    expect(wrong).toThrow('line 2');
    expect(wrong).not.toThrow('secret');
  });

  it('allows labels without a value', () => {
    expect(labelPairs(['a=b', 'c'])).toEqual({ a: 'b', c: '' });
    expect(() => labelPairs(['=b'])).toThrow('name=value');
  });

  const absolute = (path: string): string => `/abs/${path}`;
  it.each([
    ['src:/t', { source: '/abs/src', target: '/t', writable: false }],
    ['src:/t:ro', { source: '/abs/src', target: '/t', writable: false }],
    ['src:/t:rw', { source: '/abs/src', target: '/t', writable: true }],
  ])('reads the mount %s', (text, mount) => {
    expect(mountOf(text, absolute)).toEqual(mount);
  });

  it.each(['src', 'src:', ':/t', 'src:relative', 'a:b:/c', 'src:/t:z', 'rw'])(
    'refuses the mount %s',
    (text) => {
      expect(() => mountOf(text, absolute)).toThrow('SOURCE:TARGET');
    },
  );
});

describe('copies', () => {
  const absolute = (path: string): string => `/abs/${path}`;
  it('[A2] reads a source and a target', () => {
    expect(copyOf('src:/t', absolute)).toEqual({ source: '/abs/src', target: '/t' });
  });

  it.each(['src', 'src:', ':/t', 'src:relative', 'src:/t:rw'])('refuses the copy %s', (text) => {
    expect(() => copyOf(text, absolute)).toThrow('SOURCE:TARGET');
  });
});

describe('values', () => {
  it('reads sizes, durations and modes', () => {
    expect(sizeValue('512m')).toBe(512 * 2 ** 20);
    expect(timeoutValue('1h30m')).toBe(5_400_000);
    expect(timeoutValue('never')).toBe(0);
    expect(graceValue('0')).toBe(0);
    expect(lifetimeValue('45m')).toBe('45m');
    expect(lifetimeValue('never')).toBe('never');
    expect(modeValue('0755')).toBe(0o755);
  });

  it.each([
    [() => sizeValue('0'), '512m'],
    [() => timeoutValue('30'), '30s'],
    [() => graceValue('never'), '30s'],
    [() => lifetimeValue('soon'), '30s'],
    [() => modeValue('9'), '644'],
  ])('says how to write what is wrong', (read, example) => {
    expect(read).toThrow(example);
  });
});

describe('from flags to a spec', () => {
  it('says nothing that was not said', () => {
    expect(specFlags({}, '/here')).toEqual({});
  });

  it('[O8] makes paths absolute and knows every field', () => {
    const folder = mkdtempSync(join(tmpdir(), 'sally-options-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    writeFileSync(join(folder, 'vars'), 'A=file\nB=2\n');
    const flags = specFlags(
      {
        image: 'i',
        name: 'n',
        label: ['a=b'],
        env: ['A=flag'],
        envFile: ['vars'],
        mount: ['data:/data'],
        volume: ['/abs:/other:rw'],
        copy: ['data:/copied', '/abs:/more'],
        tool: ['npm', 'git:protected', 'uv:shared'],
        workdir: '/w',
        user: '1:2',
        memory: 1024,
        cpus: 0.5,
        pids: 7,
        runtime: 'runsc',
        network: 'none',
        workspace: true,
        workspaceMode: 'copy',
        profile: 'strict',
        idleTtl: '5m',
        maxLifetime: 'never',
      },
      folder,
    );
    expect(flags).toEqual({
      image: 'i',
      name: 'n',
      labels: { a: 'b' },
      envs: { A: 'flag', B: '2' },
      mounts: [
        { source: join(folder, 'data'), target: '/data', writable: false },
        { source: '/abs', target: '/other', writable: true },
      ],
      copies: [
        { source: join(folder, 'data'), target: '/copied' },
        { source: '/abs', target: '/more' },
      ],
      builtin_tools: ['npm', { name: 'git', mode: 'protected' }, { name: 'uv', mode: 'shared' }],
      workdir: '/w',
      user: '1:2',
      limits: { memory: 1024, cpus: 0.5, pids: 7 },
      runtime: 'runsc',
      network: 'none',
      workspace: { path: folder, mode: 'copy' },
      profile: 'strict',
      idle_ttl: '5m',
      max_lifetime: 'never',
    });
  });

  it.each(['uv:', 'uv:open', 'uv:shared:x'])('[A4] --tool %s is refused', (tool) => {
    expect(() => specFlags({ tool: [tool] }, '/')).toThrow('write NAME, or NAME:shared');
  });

  it.each(['host', 'bridge', 'my-net'])('[O5] refuses the network %s', (network) => {
    expect(() => specFlags({ network }, '/')).toThrow('no network card');
  });

  it('leaves the path of a workspace to a file where only its mode is given', () => {
    expect(specFlags({ workspaceMode: 'readonly' }, '/here')).toEqual({ workspace: { mode: 'readonly' } });
    expect(specFlags({ protect: ['a', 'b'], dangerouslyUnprotected: ['.vscode'] }, '/here')).toEqual({
      workspace: { protect: ['a', 'b'], dangerously_unprotected: ['.vscode'] },
    });
  });
});
