/** The package as users get it: packed, installed into a clean prefix from the tarball, and used from there. */

import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { packageInfo } from '../../src/lib/package-root.ts';
import { newFolder, sally } from '../support/cli.ts';
import { testEngine } from '../support/engine.ts';
import { commandExists, requirement } from '../support/requires.ts';

const execute = promisify(execFile);
const { root, version } = packageInfo();

const canBuildBoth = requirement(
  'a C compiler for both architectures',
  commandExists(process.arch === 'arm64' ? 'x86_64-linux-gnu-gcc' : 'aarch64-linux-gnu-gcc'),
);

describe.runIf(canBuildBoth)('the package', () => {
  let folder = '';
  let tarball = '';
  let prefix = '';

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sallyport-package-'));
    prefix = join(folder, 'prefix');
    await execute('npm', ['pack', '--pack-destination', folder], { cwd: root });
    tarball = join(folder, (await readdir(folder)).find((name) => name.endsWith('.tgz')) ?? '');
    await writeFile(join(folder, 'package.json'), '{"type":"module"}');
    await execute('npm', ['install', '--no-audit', '--no-fund', tarball], { cwd: folder });
    await execute('npm', ['install', '--global', '--prefix', prefix, '--no-audit', '--no-fund', tarball], {
      cwd: folder,
    });
  });

  afterAll(async () => {
    await rm(folder, { recursive: true, force: true });
  });

  it('carries porter for both architectures, the image recipes and nothing of the sources', async () => {
    const { stdout } = await execute('tar', ['-tzf', tarball]);
    const files = stdout.trim().split('\n');
    for (const file of [
      'package/porter/build/porter-amd64',
      'package/porter/build/porter-arm64',
      'package/porter/build/keeper-amd64',
      'package/porter/build/keeper-arm64',
      'package/images/base/Dockerfile',
      'package/agents/claude/package-lock.json',
      'package/dist/cli/sally.cjs',
      'package/LICENSE',
      'package/README.md',
    ]) {
      expect(files).toContain(file);
    }
    expect(
      files.filter(
        (file) =>
          /(?<!\.d)\.ts$|\.(c|h|test\.js)$|\/test\/|\/src\//.test(file) &&
          !file.startsWith('package/images/'),
      ),
    ).toEqual([]);
  });

  it.each(['sally', 'sallyport'])(
    'runs a command in a sandbox when installed: %s run -- id',
    async (name) => {
      // A state folder of its own, so that it starts the daemon that it brings.
      const env = { SALLYPORT_STATE_DIR: await newFolder('own') };
      const command = [join(prefix, 'bin', name)];
      try {
        const result = await sally(['run', '--image', testEngine().image, '--', 'id', '-un'], {
          command,
          env,
        });
        expect(result).toMatchObject({ code: 0, stdout: 'sally\n' });
      } finally {
        await sally(['daemon', 'stop'], { command, env });
      }
    },
  );

  it('does not let Node obey the file of --env-file, which may come from a hostile folder', async () => {
    const cwd = await newFolder();
    await writeFile(join(cwd, 'planted.cjs'), "require('node:fs').writeFileSync('planted', '')");
    await writeFile(join(cwd, 'env'), 'NODE_OPTIONS=--require=./planted.cjs\n');
    const args = ['explain', '--env-file', 'env', '--', 'true'];
    const result = await sally(args, { command: [join(prefix, 'bin', 'sally')], cwd });
    expect(result.code).toBe(0);
    expect(await readdir(cwd)).not.toContain('planted');
    // The same without the launcher shows that the file would do it.
    await execute(process.execPath, [join(root, 'dist/cli/sally.cjs'), ...args], { cwd });
    expect(await readdir(cwd)).toContain('planted');
  });

  it('is imported by programs without loading daemon, engine, schemas or WebSockets', async () => {
    const program = join(folder, 'modules.mjs');
    await writeFile(
      program,
      `const { Sandbox } = await import('sallyport');
      if (typeof Sandbox.create !== 'function') throw new Error('no Sandbox');`,
    );
    const hook = join(folder, 'hook.mjs');
    await writeFile(
      join(folder, 'loader.mjs'),
      `import { appendFileSync } from 'node:fs';
      export async function load(url, context, next) {
        appendFileSync(process.env.LOADED, url + '\\n');
        return await next(url, context);
      }`,
    );
    await writeFile(
      hook,
      "import { register } from 'node:module'; register('./loader.mjs', import.meta.url);",
    );
    const list = join(folder, 'loaded.txt');
    await execute(process.execPath, ['--import', hook, program], {
      cwd: folder,
      env: { ...process.env, LOADED: list },
    });
    const files = (await readFile(list, 'utf8'))
      .trim()
      .split('\n')
      .filter((url) => url.startsWith('file:'));
    const ours = files.filter((url) => url.includes('/node_modules/sallyport/'));
    expect(ours.some((url) => url.endsWith('/dist/sdk/index.js'))).toBe(true);
    expect(files.filter((url) => /node_modules\/(?!sallyport\/)/.test(url))).toEqual([]);
    const code = await Promise.all(ours.map((url) => readFile(fileURLToPath(url), 'utf8')));
    for (const part of [
      'src/daemon/',
      'src/engines/',
      'src/sandboxes/',
      'src/store/',
      'src/setup/',
      'src/images/',
      // Bundled, so that no file of theirs would show it.
      'node_modules/',
    ]) {
      expect(
        code.some((text) => text.includes(`// ${part}`)),
        part,
      ).toBe(false);
    }
    expect(code.some((text) => text.includes('// src/sdk/'))).toBe(true);
  });

  it('[O4][R5] tells programs its names and forbidden places without a daemon, and prunes', async () => {
    const program = join(folder, 'names.mjs');
    await writeFile(
      program,
      `import { dockerfileName, forbiddenMountSources, prune } from 'sallyport';
      const ssh = forbiddenMountSources.find(({ path, inHome }) => inHome && path === '.ssh');
      console.log(JSON.stringify([dockerfileName, ssh, Object.isFrozen(forbiddenMountSources), typeof prune]));`,
    );
    const env = { ...process.env, SALLYPORT_STATE_DIR: join(folder, 'no-daemon') };
    const { stdout } = await execute(process.execPath, [program], { cwd: folder, env });
    expect(JSON.parse(stdout)).toEqual([
      'Dockerfile.sallyport',
      { path: '.ssh', inHome: true, rule: 'credentials', refused: 'always' },
      true,
      'function',
    ]);
    expect(await readdir(folder)).not.toContain('no-daemon');
  });

  it('has types that a strict program understands, and that refuse what is wrong', async () => {
    const good = `import { forbiddenMountSources, prune, Sandbox, type ExecOutcome } from 'sallyport';
      await using box = await Sandbox.create({ limits: { memory: '1g' }, idleTtl: '5m', envs: { A_B: '1' } });
      const result: ExecOutcome = await box.exec(['true'], { timeoutMs: 1 });
      const code: number | undefined = result.exitCode;
      const { things, freedBytes } = await prune({ agent: 'claude', dryRun: true });
      const rules: readonly string[] = forbiddenMountSources.map(({ rule }) => rule);
      export { code, freedBytes, rules, things };`;
    const programs = {
      'good.ts': good,
      'name.ts': good.replace('idleTtl', 'idle_ttl'),
      'value.ts': good.replace("'1g'", 'true'),
    };
    for (const [name, text] of Object.entries(programs)) await writeFile(join(folder, name), text);
    const options = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2022'];
    const libraries = ['--lib', 'es2023,esnext.disposable', '--types', 'node'];
    const { stdout } = await execute(
      process.execPath,
      [
        join(root, 'node_modules/typescript/bin/tsc'),
        ...options,
        ...libraries,
        '--typeRoots',
        join(root, 'node_modules/@types'),
        ...Object.keys(programs),
      ],
      { cwd: folder },
    ).catch((error: { stdout: string }) => error);
    const errors = stdout.split('\n').filter((line) => /^\S.*error TS/.test(line));
    expect(errors).toEqual([
      expect.stringMatching(/^name\.ts.*idle_ttl/),
      expect.stringMatching(/^value\.ts.*TS2322/),
    ]);
  });

  it('knows its version', async () => {
    expect((await sally(['--version'], { command: [join(prefix, 'bin', 'sally')] })).stdout).toBe(
      `${version}\n`,
    );
  });
});
