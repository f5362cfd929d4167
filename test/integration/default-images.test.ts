/** `images.default`, `images.strict` and `guard.image` as users have them: in their file, pulled from a real registry, on small images. */

import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { dockerImageEngine } from '../../src/engines/docker/image-engine.ts';
import type { SallyEvent } from '../../src/protocol/events.ts';
import type { GuardResult } from '../../src/protocol/guard.ts';
import { guard } from '../../src/sdk/guard.ts';
import { busyboxImage, canMakeBusyboxImage } from '../support/busybox-image.ts';
import { type CliResult, newFolder, removeAfterwards, sally } from '../support/cli.ts';
import { testDaemon } from '../support/daemon.ts';
import { testEngine } from '../support/engine.ts';
import { push, type Registry, startRegistry } from './images-registry.ts';

const { connection, endpoint, image: testImage } = testEngine();
const engine = dockerImageEngine(connection);

let registry: Registry | undefined;
/** In the registry and not on the engine. */
let python = '';
let alpine = '';
let homeless = '';

/** Puts an image there under this name, and takes the name away from the engine. */
async function publish(source: string, name: string, tag: string): Promise<string> {
  const repository = `${registry?.host}/${name}`;
  await engine.tag(source, repository, tag);
  await push(endpoint.replace('unix://', ''), repository, tag);
  await engine.remove(`${repository}:${tag}`);
  return `${repository}:${tag}`;
}

beforeAll(async () => {
  registry = await startRegistry();
  python = await publish(testImage, 'python', '3.12-slim');
  alpine = await publish(await busyboxImage('plain'), 'alpine', 'latest');
  homeless = await publish(await busyboxImage('homeless'), 'homeless', '1');
});

afterAll(async () => {
  for (const reference of [python, alpine, homeless]) await engine.remove(reference);
  await registry?.stop();
});

/** The environment of a user with this file. */
async function userWith(config: string): Promise<Record<string, string>> {
  const home = await newFolder('own');
  await mkdir(join(home, 'sallyport'));
  await writeFile(join(home, 'sallyport/config.yaml'), config);
  return { XDG_CONFIG_HOME: home };
}

async function create(args: readonly string[], env: Record<string, string>, cwd?: string): Promise<string> {
  const made = await sally(['create', ...args], { env, ...(cwd === undefined ? {} : { cwd }) });
  expect(made.code, made.stderr).toBe(0);
  const name = made.stdout.trim();
  removeAfterwards(name);
  return name;
}

const sh = (name: string, script: string): Promise<CliResult> =>
  sally(['exec', name, '--', 'sh', '-c', script]);

/** What was told of a pull while it was made. */
async function pullsOf(name: string): Promise<readonly string[]> {
  const { stdout } = await sally(['events', name, '--json']);
  const events = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as SallyEvent);
  return events.flatMap((event) =>
    event.type === 'sandbox.progress' && event.step === 'pull' ? [event.message] : [],
  );
}

async function imageOf(name: string): Promise<string> {
  const { stdout } = await sally(['inspect', name]);
  const [{ image } = { image: '' }] = JSON.parse(stdout) as { image: string }[];
  return image;
}

describe.runIf(canMakeBusyboxImage())('the default images', () => {
  it('[C6][O1][O7] images.default is pulled on first use with progress, and not again', async () => {
    const env = await userWith(`images: { default: "${python}", strict: "${alpine}" }\n`);
    const first = await create([], env);
    expect(await imageOf(first)).toBe(python);
    expect((await pullsOf(first)).join('\n')).toContain(`asking for ${python}`);
    expect(await sally(['exec', first, '--', 'python3', '-c', 'print(6 * 7)'])).toMatchObject({
      code: 0,
      stdout: '42\n',
    });
    const second = await create([], env);
    expect(await imageOf(second)).toBe(python);
    expect(await pullsOf(second)).toEqual([]);
  });

  it('[C2][O1][O7] images.strict is used by the strict profile alone, which holds on an image without bash and coreutils', async () => {
    const env = await userWith(`images: { strict: "${alpine}" }\n`);
    const name = await create(['--profile', 'strict'], env);
    expect(await imageOf(name)).toBe(alpine);
    const { stdout, stderr } = await sh(
      name,
      'cat /etc/made-of; id -u; echo $HOME; command -v bash || echo none; touch /x; echo hi >/tmp/x && cat /tmp/x',
    );
    expect(stdout).toBe('busybox\n65534\n/tmp\nnone\nhi\n');
    expect(stderr).toContain('Read-only file system');
    expect(await sally(['verify', name])).toMatchObject({ code: 0 });
    const plain = await sally(['explain', '--json'], { env });
    expect(JSON.parse(plain.stdout).request.Image).toMatch(/^sallyport-base:/);
  });

  it('[O1] a standard sandbox works on busybox: files, a copied workspace and its changes', async () => {
    const env = await userWith(`images: { default: "${alpine}" }\n`);
    const folder = await newFolder();
    await writeFile(join(folder, 'a.txt'), 'one\n');
    const name = await create(['--workspace', '--workspace-mode', 'copy'], env, folder);
    expect(
      (await sh(name, 'cat a.txt; echo two >>a.txt; echo $HOME; echo x >~/x && cat ~/x; whoami')).stdout,
    ).toBe('one\n/home/sally\nx\nsally\n');
    const diff = await sally(['diff', name], { cwd: folder });
    expect(diff.stdout, diff.stderr).toContain('+two');
  });

  it('[O1] an image whose user has no home gets one that can be written to', async () => {
    const env = { ...(await userWith('')), SALLYPORT_DEFAULT_IMAGE: homeless };
    const name = await create([], env);
    expect((await sh(name, 'cat /etc/made-of; echo $HOME; cd; echo x >x && cat ~/x; id -u')).stdout).toMatch(
      /^homeless\n\/home\/sally\nx\n[1-9]\d*\n$/,
    );
    const strict = await create(['--profile', 'strict', '--strict-image', homeless], await userWith(''));
    expect((await sh(strict, 'cat /etc/made-of; cd; pwd; echo x >x && cat ~/x')).stdout).toBe(
      'homeless\n/tmp\nx\n',
    );
  });

  it('[O1] a named image and a Dockerfile.sallyport take precedence', async () => {
    const env = await userWith(`images: { default: "${alpine}" }\n`);
    expect(await imageOf(await create(['--image', python], env))).toBe(python);
    const folder = await newFolder();
    await writeFile(join(folder, 'Dockerfile.sallyport'), `FROM ${testImage}\nLABEL own=1\n`);
    const explained = await sally(['explain', '--workspace', '--json'], { env, cwd: folder });
    expect(JSON.parse(explained.stdout).request.Image).not.toContain('alpine');
    const refused = await sally(['create', '--workspace'], { env, cwd: folder });
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('--approve') });
  });

  it('[C6] one that no registry has is an error, and nothing takes its place', async () => {
    const env = await userWith('images: { default: "127.0.0.1:1/nothing" }\n');
    const failed = await sally(['run', '--', 'true'], { env });
    expect(failed.code).not.toBe(0);
    expect(failed.stdout).toBe('');
    expect(failed.stderr).toContain('127.0.0.1:1/nothing');
    expect(failed.stderr).not.toContain('sallyport-base');
  });

  it('[O7] a project file sets them only after approval, and never guard.image', async () => {
    const env = await userWith(`images: { default: "${python}" }\n`);
    const cwd = await newFolder();
    const state = await newFolder('own');
    const own = { ...env, SALLYPORT_STATE_DIR: state };
    await writeFile(join(cwd, 'sallyport.yaml'), `images: { default: "${alpine}" }\n`);
    const refused = await sally(['config'], { cwd, env: own });
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining(`run the image ${alpine}`) });
    expect((await sally(['config', '--approve'], { cwd, env: own })).stdout).toContain(alpine);
    await writeFile(join(cwd, 'sallyport.yaml'), `\nguard: { image: "${alpine}" }\n`);
    const unknown = await sally(['config', '--approve'], { cwd, env: own });
    expect(unknown).toMatchObject({ code: 2, stderr: expect.stringContaining('sallyport.yaml:2:1') });
  });
});

describe('[O7] sally config and sally explain', () => {
  it('show the default images with their sources, and an invalid one by line and column', async () => {
    const own = await userWith(
      'images: { default: "python:3.12-slim" }\nguard: { image: "python:3.11-slim-bookworm" }\n',
    );
    const env = { ...own, SALLYPORT_STRICT_IMAGE: 'alpine:latest' };
    const file = join(own['XDG_CONFIG_HOME'] ?? '', 'sallyport/config.yaml');
    const shown = await sally(['config', '--json'], { env });
    const { values } = JSON.parse(shown.stdout) as { values: { field: string }[] };
    const of = (field: string) => values.filter((value) => value.field === field);
    const user = { source: 'user', where: file };
    expect(of('images.default')).toEqual([{ field: 'images.default', value: 'python:3.12-slim', ...user }]);
    expect(of('image')).toEqual([{ field: 'image', value: 'python:3.12-slim', ...user }]);
    expect(of('images.strict')).toMatchObject([
      { value: 'alpine:latest', source: 'environment', where: 'SALLYPORT_STRICT_IMAGE' },
    ]);
    expect(of('guard.image')).toEqual([
      { field: 'guard.image', value: 'python:3.11-slim-bookworm', ...user },
    ]);
    const flagged = await sally(['config', '--json', '--default-image', 'debian:12'], { env });
    expect(JSON.parse(flagged.stdout).values).toContainEqual({
      field: 'images.default',
      value: 'debian:12',
      source: 'flag',
      where: '--default-image',
    });
    for (const [args, image] of [
      [[], 'python:3.12-slim'],
      [['--profile', 'strict'], 'alpine:latest'],
      [['--image', 'debian:12'], 'debian:12'],
    ] as const) {
      const explained = await sally(['explain', '--json', ...args], { env });
      expect(JSON.parse(explained.stdout).request.Image, args.join(' ')).toBe(image);
    }
    const wrong = await userWith('images:\n  default: "a b"\n');
    const refused = await sally(['run', '--', 'true'], { env: wrong });
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('config.yaml:2:12') });
    const variable = await sally(['guard', '--', 'frobnicate'], { env: { SALLYPORT_GUARD_IMAGE: '-x' } });
    expect(variable).toMatchObject({ code: 2, stderr: expect.stringContaining('SALLYPORT_GUARD_IMAGE') });
  });
});

describe.runIf(canMakeBusyboxImage())('[C2][O7] the image of guarded commands', () => {
  const command = 'frobnicate 2>/dev/null; cat /etc/made-of; id -u; command -v bash || echo none';
  const guarded = async (
    args: readonly string[],
    env: Record<string, string>,
    cwd: string,
  ): Promise<GuardResult> => {
    const ran = await sally(['guard', '--json', ...args, '--', command], { env, cwd });
    return JSON.parse(ran.stdout) as GuardResult;
  };

  it('is guard.image, else images.strict, whatever the project says; a flag takes precedence', async () => {
    const cwd = await newFolder();
    // Approved or not: a project does not choose the image of guarded commands.
    await writeFile(
      join(cwd, 'sallyport.yaml'),
      `images: { default: "${homeless}", strict: "${homeless}" }\n`,
    );
    const ownFile = await userWith(`guard: { image: "${alpine}" }\nimages: { strict: "${homeless}" }\n`);
    expect(await guarded([], ownFile, cwd)).toMatchObject({
      status: 'success',
      sandboxed: true,
      stdout: 'busybox\n65534\nnone\n',
    });
    const strict = await userWith(`images: { strict: "${alpine}" }\n`);
    expect((await guarded([], strict, cwd)).stdout).toBe('busybox\n65534\nnone\n');
    const variable = { ...ownFile, SALLYPORT_GUARD_IMAGE: homeless };
    expect((await guarded([], variable, cwd)).stdout).toBe('homeless\n65534\nnone\n');
    const flag = await guarded(['--image', testImage], ownFile, cwd);
    expect(flag.stdout).toContain('bash');
  });

  it('is the same for programs', async () => {
    const env = await userWith(`guard: { image: "${alpine}" }\n`);
    vi.stubEnv('XDG_CONFIG_HOME', env['XDG_CONFIG_HOME'] ?? '');
    onTestFinished(() => void vi.unstubAllEnvs());
    const { client, stateDir } = await testDaemon();
    const cwd = await newFolder();
    const result = await guard(command, { cwd }, { client, stateDir });
    expect(result).toMatchObject({ sandboxed: true, stdout: 'busybox\n65534\nnone\n' });
  });
});
