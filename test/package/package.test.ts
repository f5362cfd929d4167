/** The package as users get it: packed, installed into a clean prefix from the tarball, and used from there. */

import { execFile } from 'node:child_process';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { packageInfo } from '../../src/lib/package-root.ts';
import { sally } from '../support/cli.ts';
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
      'package/images/base/Dockerfile',
      'package/dist/cli/main.js',
      'package/LICENSE',
      'package/README.md',
    ]) {
      expect(files).toContain(file);
    }
    expect(
      files.filter(
        (file) => /\.(ts|c|h|test\.js)$|\/test\/|\/src\//.test(file) && !file.startsWith('package/images/'),
      ),
    ).toEqual([]);
  });

  it.each(['sally', 'sallyport'])(
    'runs a command in a sandbox when installed: %s run -- id',
    async (name) => {
      const command = [join(prefix, 'bin', name)];
      const result = await sally(['run', '--image', testEngine().image, '--', 'id'], { command });
      expect(result).toMatchObject({ code: 0, stdout: 'uid=64000 gid=64000 groups=64000\n' });
    },
  );

  it('knows its version', async () => {
    expect((await sally(['--version'], { command: [join(prefix, 'bin', 'sally')] })).stdout).toBe(
      `${version}\n`,
    );
  });
});
