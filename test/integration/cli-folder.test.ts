import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { packageInfo } from '../../src/lib/package-root.ts';
import { makeBox, newFolder, sally } from '../support/cli.ts';
import { testEngine } from '../support/engine.ts';

describe('sally config', () => {
  it('[O7] shows each value and where it comes from: flag over environment over project over user file', async () => {
    const cwd = await newFolder();
    const home = await newFolder();
    await mkdir(join(home, '.config/sallyport'), { recursive: true });
    await writeFile(
      join(home, '.config/sallyport/config.yaml'),
      'limits: { memory: 4g, cpus: 1.5 }\nidle_ttl: 1h\n',
    );
    await writeFile(
      join(cwd, 'sallyport.yaml'),
      'limits: { memory: 2g, pids: 100 }\nenvs: { TOKEN: secret }\n',
    );
    const env = { HOME: home, SALLYPORT_PIDS: '200' };
    const result = await sally(['config', '--json', '--cpus', '1', '--approve'], { cwd, env });
    expect(result.code).toBe(0);
    const { values } = JSON.parse(result.stdout) as {
      values: { field: string; source: string; where?: string }[];
    };
    const from = (field: string): unknown => values.find((value) => value.field === field);
    expect(from('limits.cpus')).toMatchObject({ source: 'flag', where: '--cpus', value: 1 });
    expect(from('limits.pids')).toMatchObject({ source: 'environment', where: 'SALLYPORT_PIDS', value: 200 });
    expect(from('limits.memory')).toMatchObject({ source: 'project', where: join(cwd, 'sallyport.yaml') });
    expect(from('idle_ttl')).toMatchObject({ source: 'user' });
    expect(from('profile')).toMatchObject({ source: 'default', value: 'standard' });
    expect(result.stdout).not.toContain('secret');
  });

  it('[A14] says line and column of what is wrong in the file, and ends with 2', async () => {
    const cwd = await newFolder();
    await writeFile(join(cwd, 'sallyport.yaml'), 'image: debian\nmemry: 1g\n');
    const result = await sally(['config'], { cwd });
    expect(result.code).toBe(2);
    expect(result.stderr).toContain('sallyport.yaml:2:1');
  });
});

describe('a sallyport.yaml', () => {
  it('takes effect only after it was approved, once', async () => {
    const cwd = await newFolder();
    const state = await newFolder('own');
    const env = { SALLYPORT_STATE_DIR: state };
    onTestFinished(async () => void (await sally(['daemon', 'stop'], { env })));
    await writeFile(join(cwd, 'sallyport.yaml'), `image: ${testEngine().image}\nenvs: { FROM: file }\n`);
    const refused = await sally(['run', '--', 'true'], { cwd, env });
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain('--approve');
    expect((await sally(['run', '--approve', '--', 'sh', '-c', 'echo $FROM'], { cwd, env })).stdout).toBe(
      'file\n',
    );
    expect((await sally(['run', '--', 'sh', '-c', 'echo $FROM'], { cwd, env })).stdout).toBe('file\n');
    await writeFile(join(cwd, 'sallyport.yaml'), `image: ${testEngine().image}\nlimits: { memory: 6g }\n`);
    expect((await sally(['run', '--', 'true'], { cwd, env })).code).toBe(2);
  });
});

describe('sally init', () => {
  it('writes a file that can be used as it is, and replaces none unasked', async () => {
    const cwd = await newFolder();
    expect((await sally(['init'], { cwd })).stdout).toBe(`${join(cwd, 'sallyport.yaml')}\n`);
    expect(await readFile(join(cwd, 'sallyport.yaml'), 'utf8')).toContain('workspace:');
    expect((await sally(['config', '--approve'], { cwd })).code).toBe(0);
    expect((await sally(['init'], { cwd })).code).toBe(2);
    expect((await sally(['init', '--force'], { cwd })).code).toBe(0);
  });
});

describe('sally explain', () => {
  it('[O2] takes what create takes, needs no daemon, and makes nothing', async () => {
    const cwd = await newFolder();
    const SALLYPORT_STATE_DIR = join(await newFolder('own'), 'unused');
    const args = ['explain', '--workspace', '-v', `${cwd}:/extra:ro`, '--label', 'a=b', '--json'];
    const result = await sally(args, { cwd, env: { SALLYPORT_STATE_DIR } });
    const { request, docker_run } = JSON.parse(result.stdout);
    expect(request.Labels).toMatchObject({ a: 'b' });
    expect(docker_run).toContain('/workspace');
    expect(docker_run).toContain('/extra');
    expect((await sally(['daemon', 'status'], { env: { SALLYPORT_STATE_DIR } })).code).toBe(1);
    expect((await sally(['explain', '-v', '/etc:/x'])).code).toBe(2);
  });

  it('[O2][A7] shows its services and the network that they share, without the values of variables', async () => {
    const cwd = await newFolder();
    const lines = [
      'required_services:',
      '  - { name: db, image: postgres, envs: { PASSWORD: swordfish } }',
      'optional_services:',
      '  - { name: cache, image: redis }',
    ];
    await writeFile(join(cwd, 'sallyport.yaml'), `${lines.join('\n')}\n`);
    const shown = await sally(['explain', '--approve', '--json'], { cwd });
    expect(shown.code, shown.stderr).toBe(0);
    const { request, services } = JSON.parse(shown.stdout);
    const network = request.HostConfig.NetworkMode;
    const host = [`HOST_UID=${process.getuid?.()}`, `HOST_GID=${process.getgid?.()}`];
    expect(services).toMatchObject([
      {
        name: 'db',
        required: true,
        request: { Image: 'postgres', Env: [...host, 'PASSWORD=***'], HostConfig: { NetworkMode: network } },
      },
      { name: 'cache', required: false, request: { HostConfig: { CapDrop: ['ALL'], Privileged: false } } },
    ]);
    expect(shown.stdout).not.toContain('swordfish');
    const wrong = lines.map((line) => line.replace('db', 'My_DB'));
    await writeFile(join(cwd, 'sallyport.yaml'), `${wrong.join('\n')}\n`);
    expect((await sally(['explain', '--approve'], { cwd })).code).toBe(2);
  });

  it('[A2][A4] shows what is copied in, and knows the built-in tools', async () => {
    const cwd = await newFolder();
    const shown = await sally(['explain', '--copy', '.:/data', '--json'], { cwd });
    expect(JSON.parse(shown.stdout).copies).toEqual([
      { source: cwd, target: '/data', exclude_patterns: [], exclude_from: [] },
    ]);
    const unknown = await sally(['explain', '--tool', 'npn'], { cwd });
    expect(unknown).toMatchObject({ code: 2, stderr: expect.stringContaining('did you mean npm?') });
  });
});

describe('sally daemon', () => {
  it('starts, says what it has, shows its log, and stops', async () => {
    const env = { SALLYPORT_STATE_DIR: await newFolder('own') };
    onTestFinished(async () => void (await sally(['daemon', 'stop'], { env })));
    expect(await sally(['daemon', 'status'], { env })).toMatchObject({ code: 1 });
    expect((await sally(['daemon', 'logs'], { env })).code).toBe(1);
    expect((await sally(['daemon', 'start'], { env })).stdout).toContain('is started');
    expect((await sally(['daemon', 'start'], { env })).stdout).toContain('was running');
    const status = JSON.parse((await sally(['daemon', 'status', '--json'], { env })).stdout);
    expect(status).toMatchObject({ version: packageInfo().version, sandboxes: {} });
    expect((await sally(['daemon', 'logs', '--tail', '5'], { env })).stdout).toContain('ready');
    expect((await sally(['version'], { env })).stdout).toContain(`pid ${status.pid}`);
    expect((await sally(['daemon', 'stop'], { env })).code).toBe(0);
    expect((await sally(['daemon', 'stop'], { env })).stdout).toContain('not running');
    expect((await sally(['version', '--json'], { env })).stdout).toContain('"daemon": null');
  });

  it('listens on a port only when it is told to, and only on loopback', async () => {
    const env = { SALLYPORT_STATE_DIR: await newFolder('own') };
    onTestFinished(async () => void (await sally(['daemon', 'stop'], { env })));
    const refused = await sally(['daemon', 'start', '--listen', '0.0.0.0:0'], { env });
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain('--dangerously-listen-anywhere');
    expect((await sally(['daemon', 'start', '--listen', '127.0.0.1:0'], { env })).code).toBe(0);
    expect((await sally(['daemon', 'logs'], { env })).stdout).toContain('listens on a port');
    expect((await sally(['daemon', 'start', '--listen', '127.0.0.1:0'], { env })).code).toBe(1);
  });

  it('lets sandboxes go on with --keep, and the next daemon has them again', async () => {
    const name = await makeBox();
    const id = (await sally(['exec', '-d', name, 'sh', '-c', 'sleep 0.5; echo after'])).stdout.trim();
    expect((await sally(['daemon', 'stop', '--keep'])).code).toBe(0);
    expect((await sally(['wait', name, id])).stdout).toBe('0\n');
    expect((await sally(['logs', name, id])).stdout).toBe('after\n');
  });
});

describe('completion', () => {
  it.each(['bash', 'zsh', 'fish'])('of %s is a script that asks the program', async (shell) => {
    expect((await sally(['completion', shell])).stdout).toContain('__complete');
  });

  it('knows no other shell', async () => {
    expect((await sally(['completion', 'tcsh'])).code).toBe(2);
  });

  it('completes verbs, options and names of sandboxes in bash itself', async () => {
    const name = await makeBox(['--name', 'completed']);
    const folder = await newFolder();
    await writeFile(join(folder, 'script'), (await sally(['completion', 'bash'])).stdout);
    const entry = join(packageInfo().root, 'dist/cli/sally.cjs');
    const program = join(folder, 'sally');
    await writeFile(program, `#!/bin/sh\nexec '${process.execPath}' '${entry}' "$@"\n`, { mode: 0o755 });
    const complete = async (...words: readonly string[]): Promise<readonly string[]> => {
      const script = `. ${folder}/script; compopt() { :; }; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _sally_complete; printf '%s\\n' "\${COMPREPLY[@]}"`;
      const command = ['bash', '-c', script, 'bash', program, ...words];
      return (await sally([], { command })).stdout.trimEnd().split('\n');
    };
    expect(await complete('in')).toEqual(['inspect', 'inject', 'init']);
    expect(await complete('run', '--prof')).toEqual(['--profile']);
    expect(await complete('run', '--profile', 's')).toEqual(['standard', 'strict']);
    expect(await complete('inspect', 'comp')).toEqual([name]);
    expect(await complete('cp', 'comp')).toEqual([`${name}:`]);
    expect(await complete('daemon', 'st')).toEqual(['start', 'stop', 'status']);
  });
});
